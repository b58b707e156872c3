package robots

import (
	"slices"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// An Explanation is a verdict with all that led to it.
type Explanation struct {
	Verdict
	// SHA256 is the hash of the file in hex. Rules do not know their file, so
	// it is empty unless Gate.Explain or the caller fills it in.
	SHA256          string   `json:"file_sha256,omitempty"`
	Path            string   `json:"path"`                  // what rules are compared with: path and query
	GroupLines      []int    `json:"group_lines,omitempty"` // the user-agent lines of Group, counted from 1
	Matches         []Match  `json:"matches,omitempty"`     // the rule that decides, then those that lose, by rank
	Exempt          bool     `json:"exempt,omitempty"`      // /robots.txt, which no rule closes (FETCH-29)
	Signals         Signals  `json:"signals,omitempty"`     // what the file asks of the use of the content
	Pace            []string `json:"pace,omitempty"`        // "crawl-delay: 2.5", and what follows as Rules.PaceLines
	IndexingVerdict *Verdict `json:"indexer,omitempty"`     // of the operator's main robot, if the verdict is NotForIndexing
}

// A Match is a rule that matches a path, and where.
type Match struct {
	Rule      string `json:"rule"`                // as Verdict.Rule
	Line      int    `json:"line"`                // in the file, counted from 1
	Octets    int    `json:"octets"`              // the length that ranks it (PREC-16)
	Lost      Loss   `json:"lost,omitempty"`      // why it does not decide; empty if it does
	Span      Span   `json:"span"`                // what of the path it matches, without the "*" implied at its end
	Wildcards []Span `json:"wildcards,omitempty"` // what each of the rule's wildcards matches, in order
}

// A Span is a part of a path, as offsets in bytes: Start is in it, End is not.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// A Loss is why a rule that matches does not decide.
type Loss string

// The losses.
const (
	Shorter  Loss = "shorter"  // a longer rule matches (PREC-01)
	Tie      Loss = "tie"      // an allow rule of the same length matches (PREC-02)
	Repeated Loss = "repeated" // a rule of the same kind and length stands before it
)

// Explain judges u as Check does, and says why. It is for people: it is much
// slower than Check, linear in the number of rules.
func (r *Rules) Explain(u decorum.URL) Explanation {
	e := Explanation{Verdict: r.Check(u), Path: u.Path(), GroupLines: r.named, Signals: r.Usage(u), Pace: r.asksOfPace()}
	if e.NotForIndexing {
		e.IndexingVerdict = new(r.indexer.Check(u))
	}
	if e.Exempt = e.Path == "/robots.txt"; e.Exempt || e.Path == "" {
		return e
	}
	var matching []ruling
	for i := range r.all {
		for _, m := range r.rulings(&r.all[i]) {
			if m.pattern.match(e.Path) {
				matching = append(matching, m)
			}
		}
	}
	slices.SortFunc(matching, func(a, b ruling) int { return a.rule.compare(b.rule) })
	for _, m := range matching {
		e.Matches = append(e.Matches, m.explain(e.Path, matching[0].rule))
	}
	return e
}

// asksOfPace returns all lines that ask for a pace.
func (r *Rules) asksOfPace() []string {
	lines := r.PaceLines()
	if pause, ok := r.CrawlDelay(); ok {
		line := crawlDelay.String() + ": " + strconv.FormatFloat(pause.Seconds(), 'f', -1, 64)
		lines = slices.Insert(lines, 0, line)
	}
	return lines
}

// A ruling is a rule, and a pattern that it stands for.
type ruling struct {
	*rule
	pattern pattern
}

// rulings returns what a rule means: in the GoogleOSS dialect some mean two
// things.
func (r *Rules) rulings(made *rule) []ruling {
	if !r.verbatim {
		return []ruling{{made, *made.compiled()}}
	}
	p, folder := ossPatterns(made.path(), made.allow)
	if folder == nil {
		return []ruling{{made, p}}
	}
	twin := *made
	twin.length = folder.length
	return []ruling{{made, p}, {&twin, *folder}}
}

// explain says where a rule that matches path does so, and how it fares
// against the winner.
func (r ruling) explain(path string, winner *rule) Match {
	m := Match{Rule: r.text, Line: r.line, Octets: r.length}
	m.Span, m.Wildcards = r.pattern.spans(path)
	switch {
	case r.rule == winner:
	case r.length < winner.length:
		m.Lost = Shorter
	case r.allow != winner.allow:
		m.Lost = Tie
	default:
		m.Lost = Repeated
	}
	return m
}

// path returns the value of the rule.
func (r *rule) path() string {
	_, path, _ := strings.Cut(r.text, ": ")
	return path
}

// compiled returns the pattern of the rule, in all dialects but GoogleOSS.
func (r *rule) compiled() *pattern {
	p := compilePattern(r.path())
	return &p
}

// spans returns what of path, which p matches, p takes, and what of it each
// wildcard before a literal stands for. It takes literals where match does.
func (p *pattern) spans(path string) (whole Span, wildcards []Span) {
	at := p.head.at(path)
	for i := range p.tail {
		l, end := &p.tail[i], 0
		if p.anchored && i == len(p.tail)-1 {
			end = len(path)
		} else {
			end = at + l.in(path[at:])
		}
		start := at
		for l.at(path[start:end]) != end-start {
			start++
		}
		wildcards = append(wildcards, Span{at, start})
		at = end
	}
	return Span{0, at}, wildcards
}
