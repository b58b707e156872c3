package robots

import (
	"math/bits"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// A RemovedParam is a parameter that a Clean-param line takes off a URL.
type RemovedParam struct {
	NameAndValue string `json:"parameter"` // with its value
	Rule         string `json:"rule"`      // the line, as it is written
	Line         int    `json:"line"`      // counted from 1
}

// ExplainURLCleaning returns u as URLCleaner.CleanURL does, and which line took what off.
// If several lines remove the same parameter, it names the first.
func (f *File) ExplainURLCleaning(u decorum.URL) (clean decorum.URL, removed []RemovedParam) {
	c, applied := f.newCleaner()
	path, query, _ := strings.Cut(u.PathAndQuery(), "?")
	set := c.linesForQuery(query)
	c.dropLinesNotMatchingPath(&set, path)
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if i, ok := c.linesByParam[name].firstCommonLine(&set); ok {
			l := applied[i]
			removed = append(removed, RemovedParam{parameter, l.Field.String() + ": " + l.Value, int(l.Number)})
		}
	}
	return c.CleanURL(u), removed
}

// firstCommonLine returns the first of the lines that is in a set.
func (l *linesNamingParam) firstCommonLine(other *cleanParamLineBitset) (line int, ok bool) {
	if l == nil {
		return 0, false
	}
	var own cleanParamLineBitset
	l.addToSet(&own)
	for i := range own {
		if word := own[i] & other[i]; word != 0 {
			return i*64 + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}
