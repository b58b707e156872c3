package reporttext

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// A Builder is text for people, in the making.
type Builder struct{ bytes.Buffer }

func (s *Builder) WriteLine(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// WriteTable writes rows in columns.
func (s *Builder) WriteTable(rows func(row func(cells ...any))) {
	t := tabwriter.NewWriter(s, 0, 0, 2, ' ', 0)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = fmt.Sprint(c)
		}
		fmt.Fprintln(t, strings.Join(texts, "\t"))
	})
	t.Flush() // into memory: it cannot fail
}
