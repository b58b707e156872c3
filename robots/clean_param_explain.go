package robots

import (
	"context"
	"math/bits"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// A Taking is a parameter that a Clean-param line takes off a URL.
type Taking struct {
	Parameter string `json:"parameter"` // with its value
	Rule      string `json:"rule"`      // the line, as it is written
	Line      int    `json:"line"`      // counted from 1
}

// ExplainClean returns u as Cleaner.Clean does, and which line took what off.
// If several lines remove the same parameter, it names the first.
func (f *File) ExplainClean(u decorum.URL) (clean decorum.URL, taken []Taking) {
	c, heeded := f.cleaner()
	path, query, _ := strings.Cut(u.Path(), "?")
	about := c.named(query)
	c.keepMatching(&about, path)
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if i, ok := c.lines[name].first(&about); ok {
			l := heeded[i]
			taken = append(taken, Taking{parameter, l.field.String() + ": " + l.value, int(l.number)})
		}
	}
	return c.Clean(u), taken
}

// first returns the first of the lines that is in a set.
func (l *cleanLines) first(set *cleanParamLineSet) (line int, ok bool) {
	if l == nil {
		return 0, false
	}
	var both cleanParamLineSet
	l.addTo(&both)
	for i := range both {
		if word := both[i] & set[i]; word != 0 {
			return i*64 + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}

// ExplainClean returns u as Clean does when the origin's file is in mind, and
// which line took what off.
func (g *Gate) ExplainClean(ctx context.Context, u decorum.URL) (clean decorum.URL, taken []Taking, err error) {
	r, err := g.load(ctx, u.Origin())
	if err != nil {
		return u, nil, err
	}
	file := g.parse(&r)
	if file == nil {
		return u, nil, nil
	}
	clean, taken = file.ExplainClean(u)
	return clean, taken, nil
}
