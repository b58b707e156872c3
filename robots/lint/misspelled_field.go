package lint

import (
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// separatorRemover takes out of a name what makes no difference to nearestField.
var separatorRemover = strings.NewReplacer("-", "", "_", "", " ", "", "\t", "", "\ufeff", "")

// nearestField returns the field that name probably is a misspelling of, empty
// if it is like none. Space, "_" and "-" make no difference, nor do two letters
// in a long name or one in a short.
func nearestField(name string) string {
	name = separatorRemover.Replace(name)
	for _, f := range syntax.FieldNames {
		plain := separatorRemover.Replace(f)
		if editDistance(name, plain) <= len(plain)/4 {
			return f
		}
	}
	return ""
}

// editDistance returns how many letters must be put in, taken out or changed to
// make a of b; 100 if the lengths tell that it is many.
func editDistance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
