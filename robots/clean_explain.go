package robots

import (
	"context"
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
// Where several lines take the same parameter off, the first is named. It is for
// people: it reads every line anew.
func (f *File) ExplainClean(u decorum.URL) (clean decorum.URL, taken []Taking) {
	path, query, _ := strings.Cut(u.Path(), "?")
	for parameter := range strings.SplitSeq(query, "&") {
		if l, ok := f.taker(path, parameter); ok {
			taken = append(taken, Taking{parameter, l.field.String() + ": " + l.value, int(l.number)})
		}
	}
	return f.Cleaner().Clean(u), taken
}

// taker returns the first line that takes a parameter off URLs of the path.
func (f *File) taker(path, parameter string) (line, bool) {
	heeded := 0
	for _, l := range f.lines {
		if l.field != cleanParam || heeded == mostClean {
			continue
		}
		one := Cleaner{lines: map[string][]int{}}
		one.add(l.value)
		heeded += len(one.places)
		if about := one.about(path); one.takes(parameter, &about) {
			return l, true
		}
	}
	return line{}, false
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
