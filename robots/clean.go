package robots

import (
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
)

// A Cleaner takes off the parameters that a file's Clean-param lines name: they
// do not change what a page shows (CLEAN-01). It is immutable and safe for
// concurrent use. A nil Cleaner takes off nothing.
type Cleaner struct {
	places []pattern        // of each line: the paths that it is about
	lines  map[string][]int // of each parameter: the lines that name it
}

const (
	// longestClean is how many characters a Clean-param value may have
	// (CLEAN-14).
	longestClean = 500
	// mostClean is how many such lines of a file are heeded. It bounds the work
	// that a file can make of every URL; what is not taken off does no harm.
	mostClean = 1024
)

// Cleaner returns what the file's Clean-param lines say. They hold for every
// agent, wherever they stand (CLEAN-07, GRP-18). It is nil if there are none.
func (f *File) Cleaner() *Cleaner {
	c := &Cleaner{lines: make(map[string][]int)}
	for _, l := range f.lines {
		if l.field == cleanParam && len(c.places) < mostClean {
			c.add(l.value)
		}
	}
	if len(c.places) == 0 {
		return nil
	}
	return c
}

// add heeds the value of a line, "p0[&p1…] [path]" (CLEAN-02), unless it is
// incorrect. Nothing of the file's text is kept.
func (c *Cleaner) add(value string) {
	if utf8.RuneCountInString(value) > longestClean {
		return
	}
	words := strings.FieldsFunc(strings.Clone(value), func(r rune) bool { return strings.ContainsRune(blank, r) })
	switch {
	case len(words) == 1: // CLEAN-09
		words = append(words, "/")
	case len(words) != 2 || !validPlace(words[1]):
		return
	}
	number := len(c.places)
	for name := range strings.SplitSeq(words[0], "&") {
		if name = inURL(name); name != "" {
			c.lines[name] = append(c.lines[name], number)
		}
	}
	c.places = append(c.places, compilePattern(words[1]))
}

// validPlace reports whether s is fit for the second field (CLEAN-10,
// CLEAN-22).
func validPlace(s string) bool {
	for i := range len(s) {
		if !alphanumeric(s[i]) && strings.IndexByte(".-/*_", s[i]) < 0 {
			return false
		}
	}
	return validPath(s)
}

// inURL returns the name of a parameter as URLs in canonical form have it,
// empty if none can.
func inURL(name string) string {
	u, err := decorum.ParseURL("http://x/?" + name)
	if err != nil {
		return ""
	}
	_, name, _ = strings.Cut(u.Path(), "?")
	return name
}

// Clean returns u without the parameters that the lines about its path name.
// The others stay, in their order and spelling (CLEAN-21). To clean twice is
// to clean once. It allocates nothing if there is nothing to take off.
func (c *Cleaner) Clean(u decorum.URL) decorum.URL {
	if c == nil || u.IsZero() {
		return u
	}
	path, query, ok := strings.Cut(u.Path(), "?")
	if !ok {
		return u
	}
	about := c.about(path)
	if about == (lineSet{}) || !c.takesAny(query, &about) {
		return u
	}
	before := len(u.String()) - len(query) - len("?")
	clean, err := decorum.ParseURL(c.without(u.String()[:before], query, &about))
	if err != nil {
		return u
	}
	return clean
}

// A lineSet is a set of Clean-param lines.
type lineSet [mostClean / 64]uint64

// about returns the lines whose place path is in. Each is asked once, however
// many parameters there are.
func (c *Cleaner) about(path string) (set lineSet) {
	for i := range c.places {
		if c.places[i].match(path) {
			set[i/64] |= 1 << (i % 64)
		}
	}
	return set
}

// takes reports whether one of the lines takes a parameter off.
func (c *Cleaner) takes(parameter string, about *lineSet) bool {
	name, _, _ := strings.Cut(parameter, "=")
	for _, i := range c.lines[name] {
		if about[i/64]&(1<<(i%64)) != 0 {
			return true
		}
	}
	return false
}

func (c *Cleaner) takesAny(query string, about *lineSet) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		if c.takes(parameter, about) {
			return true
		}
	}
	return false
}

// without returns page and what is left of its query.
func (c *Cleaner) without(page, query string, about *lineSet) string {
	var b strings.Builder
	b.Grow(len(page) + len("?") + len(query))
	b.WriteString(page)
	mark := byte('?')
	for parameter := range strings.SplitSeq(query, "&") {
		if c.takes(parameter, about) {
			continue
		}
		b.WriteByte(mark)
		b.WriteString(parameter)
		mark = '&'
	}
	return b.String()
}
