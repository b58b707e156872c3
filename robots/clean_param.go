package robots

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
)

// A Cleaner takes off the parameters that a file's Clean-param lines name: they
// do not change what a page shows (CLEAN-01). It is immutable and safe for
// concurrent use. A nil Cleaner takes off nothing.
type Cleaner struct {
	places []cleanPlace
	lines  map[string]*cleanLines // of each parameter: the lines that name it
	wild   int                    // places with wildcards
}

// A cleanPlace is the path pattern of a Clean-param line.
type cleanPlace struct {
	pattern pattern
	pairs   pairs // of its literals, if it has wildcards
}

const (
	// maxCleanParamChars is how many characters a Clean-param value may have
	// (CLEAN-14).
	maxCleanParamChars = 500
	// maxCleanParamLines is how many such lines of a file are heeded. It bounds the work
	// that a file can make of every URL; what is not taken off does no harm.
	maxCleanParamLines = 1024
	// maxCleanWild is how many lines may have wildcards: matching such a line may read
	// the whole path.
	maxCleanWild = 128
	// maxCleanWildcards is how many wildcards the path of a line may have, one at its
	// end not counted. A line with more is ignored.
	maxCleanWildcards = 16
)

// Cleaner returns what the file's Clean-param lines say. They hold for every
// agent, wherever they stand (CLEAN-07, GRP-18). It is nil if there are none.
func (f *File) Cleaner() *Cleaner {
	c, heeded := f.cleaner()
	if len(heeded) == 0 {
		return nil
	}
	return c
}

// cleaner returns a Cleaner, possibly without lines, and its lines.
func (f *File) cleaner() (c *Cleaner, heeded []line) {
	c = &Cleaner{lines: make(map[string]*cleanLines)}
	for _, l := range f.lines {
		if l.field == cleanParam && len(c.places) < maxCleanParamLines {
			c.add(l.value)
			if len(c.places) > len(heeded) {
				heeded = append(heeded, l)
			}
		}
	}
	return c, heeded
}

// add heeds the value of a line, "p0[&p1…] [path]" (CLEAN-02), unless it is
// incorrect. Nothing of the file's text is kept.
func (c *Cleaner) add(value string) {
	if utf8.RuneCountInString(value) > maxCleanParamChars {
		return
	}
	words := strings.FieldsFunc(strings.Clone(value), func(r rune) bool { return strings.ContainsRune(blank, r) })
	switch {
	case len(words) == 1: // CLEAN-09
		words = append(words, "/")
	case len(words) != 2 || !validPlace(words[1]):
		return
	}
	place := compilePattern(words[1])
	if len(place.tail) > maxCleanWildcards || len(place.tail) > 0 && c.wild == maxCleanWild {
		return
	}
	for name := range strings.SplitSeq(words[0], "&") {
		if name = inURL(name); name != "" {
			if c.lines[name] == nil {
				c.lines[name] = &cleanLines{}
			}
			c.lines[name].add(len(c.places))
		}
	}
	p := cleanPlace{pattern: place}
	if len(place.tail) > 0 {
		c.wild++
		p.pairs = place.pairs()
	}
	c.places = append(c.places, p)
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
	about := c.named(query)
	if about == (cleanParamLineSet{}) {
		return u
	}
	if c.keepMatching(&about, path); about == (cleanParamLineSet{}) {
		return u
	}
	before := len(u.String()) - len(query) - len("?")
	clean, err := decorum.ParseURL(c.without(u.String()[:before], query, &about))
	if err != nil {
		return u
	}
	return clean
}

// A cleanParamLineSet is a set of Clean-param lines.
type cleanParamLineSet [maxCleanParamLines / 64]uint64

// fewLines is the longest list of lines: it has as many as a cleanParamLineSet has words.
const fewLines = maxCleanParamLines / 64

// cleanLines are the lines that name a parameter: a list while it is short, then a set.
// A file that names a parameter in every line therefore makes no URL costlier.
type cleanLines struct {
	few  []uint16           // ascending
	many *cleanParamLineSet // nil: the lines are in few
}

// add adds a line. Lines arrive in order.
func (l *cleanLines) add(line int) {
	switch n := len(l.few); {
	case l.many != nil:
		l.many[line/64] |= 1 << (line % 64)
	case n > 0 && int(l.few[n-1]) == line: // the line names the parameter twice
	case n < fewLines:
		l.few = append(l.few, uint16(line))
	default:
		l.many = &cleanParamLineSet{}
		l.addTo(l.many)
		l.many[line/64] |= 1 << (line % 64)
		l.few = nil
	}
}

// addTo adds the lines to a set.
func (l *cleanLines) addTo(set *cleanParamLineSet) {
	for _, line := range l.few {
		set[line/64] |= 1 << (line % 64)
	}
	if l.many != nil {
		for i := range set {
			set[i] |= l.many[i]
		}
	}
}

// intersects reports whether a line is in a set.
func (l *cleanLines) intersects(set *cleanParamLineSet) bool {
	for _, line := range l.few {
		if set[line/64]&(1<<(line%64)) != 0 {
			return true
		}
	}
	if l.many != nil {
		for i := range set {
			if set[i]&l.many[i] != 0 {
				return true
			}
		}
	}
	return false
}

// named returns the lines that name a parameter of query.
func (c *Cleaner) named(query string) (set cleanParamLineSet) {
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if l := c.lines[name]; l != nil {
			l.addTo(&set)
		}
	}
	return set
}

// keepMatching removes from set the lines whose place does not match path. It matches
// each place once, whatever the number of parameters.
func (c *Cleaner) keepMatching(set *cleanParamLineSet, path string) {
	here, known := pairs(0), false
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			bit := bits.TrailingZeros64(word)
			p := &c.places[i*64+bit]
			if p.pairs != 0 && !known {
				here, known = pairsOf(path), true
			}
			if p.pairs&^here != 0 || !p.pattern.match(path) {
				set[i] &^= 1 << bit
			}
		}
	}
}

// takes reports whether one of the lines removes a parameter.
func (c *Cleaner) takes(parameter string, about *cleanParamLineSet) bool {
	name, _, _ := strings.Cut(parameter, "=")
	l := c.lines[name]
	return l != nil && l.intersects(about)
}

// without returns page and what is left of its query.
func (c *Cleaner) without(page, query string, about *cleanParamLineSet) string {
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
