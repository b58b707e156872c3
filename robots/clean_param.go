package robots

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// A URLCleaner removes the query parameters that the Clean-param lines of a file name, because they
// do not change the content of a page (CLEAN-01). It is immutable and safe for concurrent use. A nil
// URLCleaner removes nothing.
//
// It numbers the lines from 0 and finds the lines for a URL in two steps: linesForQuery selects those
// that name one of its parameters, then dropLinesNotMatchingPath keeps those whose path matches.
type URLCleaner struct {
	paths            []cleanParamPathPattern      // of each line, by its number
	linesByParam     map[string]*linesNamingParam // by parameter: the lines that name it
	numWildcardPaths int                          // how many of paths have wildcards
}

// A cleanParamPathPattern is the path pattern of a Clean-param line.
type cleanParamPathPattern struct {
	pattern match.Pattern
	bigrams match.BigramSet // of the pattern's literals; 0 if it has no wildcards
}

const (
	// maxCleanParamChars is the maximum length of a Clean-param value, in characters (CLEAN-14).
	maxCleanParamChars = 500
	// maxCleanParamLines is how many Clean-param lines of a file are applied. It bounds the work per
	// URL that a file can cause; parameters of further lines stay in URLs, which does no harm.
	maxCleanParamLines = 1024
	// maxCleanParamWildcardLines is how many of these lines may have wildcards. It is lower because
	// matching such a line may read the whole path.
	maxCleanParamWildcardLines = 128
)

// URLCleaner returns a URLCleaner for the file's Clean-param lines, nil if it has none. The lines
// apply to all agents, wherever they are in the file (CLEAN-07, GRP-18).
func (f *File) URLCleaner() *URLCleaner {
	c, applied := f.newCleaner()
	if len(applied) == 0 {
		return nil
	}
	return c
}

// newCleaner returns a URLCleaner and the lines that it applies, by their number in it. Both may be
// empty.
func (f *File) newCleaner() (c *URLCleaner, applied []syntax.Line) {
	c = &URLCleaner{linesByParam: make(map[string]*linesNamingParam)}
	for _, l := range f.lines {
		if l.Field == syntax.CleanParam && len(c.paths) < maxCleanParamLines {
			c.addLine(l.Value)
			if len(c.paths) > len(applied) {
				applied = append(applied, l)
			}
		}
	}
	return c, applied
}

// addLine adds the value of a line, "p0[&p1…] [path]" (CLEAN-02). It ignores an invalid value, and a
// value with wildcards beyond the limits. It does not keep the text of the file in memory.
func (c *URLCleaner) addLine(value string) {
	if utf8.RuneCountInString(value) > maxCleanParamChars {
		return
	}
	// Split the value into parameters and path. Without a path it applies to all paths.
	words := strings.FieldsFunc(strings.Clone(value), func(r rune) bool {
		return strings.ContainsRune(syntax.BlankChars, r)
	})
	switch {
	case len(words) == 1: // CLEAN-09
		words = append(words, "/")
	case len(words) != 2 || !isCleanParamPath(words[1]):
		return
	}
	compiled := match.CompilePattern(words[1])
	if compiled.NumWildcards() > syntax.MaxCleanParamWildcards ||
		compiled.NumWildcards() > 0 && c.numWildcardPaths == maxCleanParamWildcardLines {
		return
	}
	// Index the line, whose number is len(c.paths), by each of its parameters.
	for name := range strings.SplitSeq(words[0], "&") {
		if name = canonicalParamName(name); name != "" {
			if c.linesByParam[name] == nil {
				c.linesByParam[name] = &linesNamingParam{}
			}
			c.linesByParam[name].add(len(c.paths))
		}
	}
	p := cleanParamPathPattern{pattern: compiled}
	if compiled.NumWildcards() > 0 {
		c.numWildcardPaths++
		p.bigrams = compiled.Bigrams()
	}
	c.paths = append(c.paths, p)
}

// isCleanParamPath reports whether s is a valid path of a Clean-param line (CLEAN-10, CLEAN-22).
func isCleanParamPath(s string) bool {
	for i := range len(s) {
		if !syntax.IsAlphanumeric(s[i]) && strings.IndexByte(".-/*_", s[i]) < 0 {
			return false
		}
	}
	return syntax.BeginsWithSlashOrStar(s)
}

// canonicalParamName returns name in the form in which it appears in canonical URLs, "" if it cannot
// appear there.
func canonicalParamName(name string) string {
	u, err := decorum.ParseURL("http://x/?" + name)
	if err != nil {
		return ""
	}
	_, name, _ = strings.Cut(u.PathAndQuery(), "?")
	return name
}

// CleanURL returns u without the parameters that the lines for its path name. The other parameters
// keep their order and spelling (CLEAN-21). CleanURL is idempotent, and it does not allocate if it
// removes nothing.
func (c *URLCleaner) CleanURL(u decorum.URL) decorum.URL {
	if c == nil || u.IsZero() {
		return u
	}
	path, query, ok := strings.Cut(u.PathAndQuery(), "?")
	if !ok {
		return u
	}
	set := c.linesForQuery(query)
	if c.dropLinesNotMatchingPath(&set, path); set == (cleanParamLineBitset{}) {
		return u
	}
	pageLen := len(u.String()) - len(query) - len("?")
	clean, err := decorum.ParseURL(c.urlWithoutParams(u.String()[:pageLen], query, &set))
	if err != nil {
		return u
	}
	return clean
}

// A cleanParamLineBitset is a set of Clean-param lines, by their number in a URLCleaner.
type cleanParamLineBitset [maxCleanParamLines / 64]uint64

// maxLineList is the maximum length of linesNamingParam.list: the number of words in a
// cleanParamLineBitset, so that reading the list is never slower than reading the set.
const maxLineList = maxCleanParamLines / 64

// linesNamingParam contains the lines that name one parameter: a list while it is short, then a set.
// The work per URL therefore stays bounded even if every line of a file names the same parameter.
type linesNamingParam struct {
	list    []uint16              // ascending; nil once lineSet is in use
	lineSet *cleanParamLineBitset // nil while the lines are in list
}

// add adds a line. The caller adds lines in ascending order.
func (l *linesNamingParam) add(line int) {
	switch n := len(l.list); {
	case l.lineSet != nil:
		l.lineSet[line/64] |= 1 << (line % 64)
	case n > 0 && int(l.list[n-1]) == line: // the line names the parameter twice
	case n < maxLineList:
		l.list = append(l.list, uint16(line))
	default:
		l.lineSet = &cleanParamLineBitset{}
		l.addToSet(l.lineSet)
		l.lineSet[line/64] |= 1 << (line % 64)
		l.list = nil
	}
}

// addToSet adds the lines to dst.
func (l *linesNamingParam) addToSet(dst *cleanParamLineBitset) {
	for _, line := range l.list {
		dst[line/64] |= 1 << (line % 64)
	}
	if l.lineSet != nil {
		for i := range dst {
			dst[i] |= l.lineSet[i]
		}
	}
}

// intersects reports whether one of the lines is in other.
func (l *linesNamingParam) intersects(other *cleanParamLineBitset) bool {
	for _, line := range l.list {
		if other[line/64]&(1<<(line%64)) != 0 {
			return true
		}
	}
	if l.lineSet != nil {
		for i := range other {
			if other[i]&l.lineSet[i] != 0 {
				return true
			}
		}
	}
	return false
}

// linesForQuery returns the lines that name a parameter of query.
func (c *URLCleaner) linesForQuery(query string) (set cleanParamLineBitset) {
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if l := c.linesByParam[name]; l != nil {
			l.addToSet(&set)
		}
	}
	return set
}

// dropLinesNotMatchingPath removes from set the lines whose pattern does not match path. It matches
// each pattern once, whatever the number of parameters.
func (c *URLCleaner) dropLinesNotMatchingPath(set *cleanParamLineBitset, path string) {
	pathBigrams, known := match.BigramSet(0), false // computed for the first pattern with wildcards
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			bit := bits.TrailingZeros64(word)
			p := &c.paths[i*64+bit]
			if p.bigrams != 0 && !known {
				pathBigrams, known = match.BigramsOf(path), true
			}
			if p.bigrams&^pathBigrams != 0 || !p.pattern.Matches(path) {
				set[i] &^= 1 << bit
			}
		}
	}
}

// urlWithoutParams returns page, a URL without query, followed by the parameters of query that no
// line of set names.
func (c *URLCleaner) urlWithoutParams(page, query string, set *cleanParamLineBitset) string {
	var b strings.Builder
	b.Grow(len(page) + len("?") + len(query))
	b.WriteString(page)
	separator := byte('?')
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if l := c.linesByParam[name]; l != nil && l.intersects(set) {
			continue
		}
		b.WriteByte(separator)
		b.WriteString(parameter)
		separator = '&'
	}
	return b.String()
}

// A RemovedParam is a query parameter that a Clean-param line removes from a URL.
type RemovedParam struct {
	NameAndValue string `json:"parameter"` // as in the URL: "name=value"
	Rule         string `json:"rule"`      // the line, as in "clean-param: sid /forum/"
	Line         int    `json:"line"`      // its line number in the file, from 1
}

// ExplainURLCleaning returns u as URLCleaner.CleanURL does, and which line removes which parameter.
// If several lines remove the same parameter, it names the first of them.
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

// firstCommonLine returns the first of the lines that is in other.
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
