package daemon

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// A paramReport is what a survey of parameters suggests. Nothing of it is applied
// by itself.
type paramReport struct {
	Pages          int               `json:"pages"`  // with a body
	SampledOneIn   int               `json:"one_in"` // of so many URLs, one was compared with others
	Suggestions    []paramSuggestion `json:"suggestions"`
	HostDuplicates []*hostDuplicates `json:"duplicates"` // of hosts that have any, most first
	SkippedParams  int               `json:"skipped"`    // parameters met in too many places to be counted
}

// A paramSuggestion is a parameter that seems not to matter somewhere.
type paramSuggestion struct {
	Host       string `json:"host"`
	Parameter  string `json:"parameter"`
	PathPrefix string `json:"path"` // what paths there begin with
	paramEvidence
	CleanParam string `json:"clean_param,omitempty"` // the line one could write; empty: the evidence is too weak
}

// How strong the evidence must be for a line: so many pairs or canonical links,
// and so many times more of them for it than against it.
const (
	minEvidence      = 3
	minEvidenceRatio = 50
)

// favorsDropping reports whether the evidence speaks for taking the parameter off.
func (at *paramEvidence) favorsDropping() bool {
	forDropping, againstDropping := at.SameBodyPairs+at.CanonicalsWithoutParam, at.DifferentBodyPairs+at.CanonicalsWithParam
	return forDropping >= minEvidence && forDropping >= minEvidenceRatio*againstDropping
}

func (at *paramEvidence) merge(more *paramEvidence) {
	at.SameBodyPairs += more.SameBodyPairs
	at.DifferentBodyPairs += more.DifferentBodyPairs
	at.CanonicalsWithoutParam += more.CanonicalsWithoutParam
	at.CanonicalsWithParam += more.CanonicalsWithParam
	if at.ExamplePair[0] == "" {
		at.ExamplePair = more.ExamplePair
	}
}

// report returns what the survey suggests: places of a parameter are one if
// the evidence agrees in all of them, and else each stands alone.
func (s *paramAnalysis) report() *paramReport {
	r := &paramReport{Pages: s.pageCount, SampledOneIn: max(s.pagesByURL.keysPerSampledKey(), s.variantsByURLWithoutParam.keysPerSampledKey()), SkippedParams: s.skippedParamCount,
		Suggestions: []paramSuggestion{}, HostDuplicates: []*hostDuplicates{}}
	merged := map[paramKey]*paramSuggestion{}
	isMixed := map[paramKey]bool{}
	for key, at := range s.evidence {
		hostParam := paramKey{host: key.host, parameter: key.parameter}
		if at.DifferentBodyPairs+at.CanonicalsWithParam > 0 && !at.favorsDropping() {
			isMixed[hostParam] = true
		}
	}
	for key, at := range s.evidence {
		group := paramKey{host: key.host, parameter: key.parameter}
		if isMixed[group] {
			group.directory = key.directory
		}
		if merged[group] == nil {
			merged[group] = &paramSuggestion{Host: key.host, Parameter: key.parameter, PathPrefix: key.directory}
		}
		merged[group].PathPrefix = commonDirectory(merged[group].PathPrefix, key.directory)
		merged[group].merge(at)
	}
	for _, m := range merged {
		if m.SameBodyPairs+m.CanonicalsWithoutParam == 0 {
			continue
		}
		if m.favorsDropping() {
			m.CleanParam = "Clean-param: " + m.Parameter + " " + m.PathPrefix
		}
		r.Suggestions = append(r.Suggestions, *m)
	}
	slices.SortFunc(r.Suggestions, paramSuggestion.compare)
	for _, d := range s.duplicatesByHost {
		if d.DuplicateBodies+d.CanonicalElsewhere > 0 {
			r.HostDuplicates = append(r.HostDuplicates, d)
		}
	}
	slices.SortFunc(r.HostDuplicates, func(a, b *hostDuplicates) int {
		return cmp.Or(cmp.Compare(b.DuplicateBodies+b.CanonicalElsewhere, a.DuplicateBodies+a.CanonicalElsewhere), strings.Compare(a.Host, b.Host))
	})
	return r
}

// compare puts first what a line can be written of, and of that what takes most.
func (m paramSuggestion) compare(n paramSuggestion) int {
	weak := func(s paramSuggestion) int {
		if s.CleanParam == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(weak(m)-weak(n), cmp.Compare(n.SameBodyPairs+n.CanonicalsWithoutParam, m.SameBodyPairs+m.CanonicalsWithoutParam),
		strings.Compare(m.Host, n.Host), strings.Compare(m.Parameter, n.Parameter), strings.Compare(m.PathPrefix, n.PathPrefix))
}

// commonDirectory returns the directory that two have in common.
func commonDirectory(a, b string) string {
	for !strings.HasPrefix(b, a) {
		a = a[:strings.LastIndexByte(a[:len(a)-1], '/')+1]
	}
	return a
}

// write writes the report in the form that was asked for.
func (r *paramReport) write(w io.Writer, q reportOptions) error {
	if q.limit > 0 {
		r.Suggestions = r.Suggestions[:min(q.limit, len(r.Suggestions))]
		r.HostDuplicates = r.HostDuplicates[:min(q.limit, len(r.HostDuplicates))]
	}
	switch q.format {
	case "json":
		return writeJSON(w, r)
	case "jsonl":
		e := jsonline.NewEscapingEncoder(w)
		e.SetEscapeHTML(false)
		for _, m := range r.Suggestions {
			if err := e.Encode(m); err != nil {
				return err
			}
		}
		return nil
	}
	return r.writeTable(w, q.dataDir)
}

// writeTable writes the report for people.
func (r *paramReport) writeTable(w io.Writer, dataDir string) error {
	var p textBuilder
	p.writeLine("Parameters that may not matter, by the %d pages in the output of the crawl in %s", r.Pages, dataDir)
	if r.SampledOneIn > 1 {
		p.writeLine("One in %d URLs was compared with others", r.SampledOneIn)
	}
	p.writeLine("")
	if len(r.Suggestions) == 0 {
		p.writeLine("No page is the same as one without a parameter of its, or with another value of it.")
	} else {
		p.writeTable(func(row func(...any)) {
			row("HOST", "PARAMETER", "PATH", "SAME", "OTHER", "CANONICAL WITHOUT", "WITH", "ONE COULD WRITE")
			for _, m := range r.Suggestions {
				row(m.Host, m.Parameter, m.PathPrefix, m.SameBodyPairs, m.DifferentBodyPairs, m.CanonicalsWithoutParam, m.CanonicalsWithParam, cmp.Or(m.CleanParam, "-"))
			}
		})
		p.writeLine("")
		for _, m := range r.Suggestions {
			p.writeLine("%s of %s: %s and %s", m.Parameter, m.Host, m.ExamplePair[0], m.ExamplePair[1])
		}
	}
	if len(r.HostDuplicates) > 0 {
		p.writeLine("")
		p.writeLine("Pages whose body is exactly that of another page of their host, and pages that name another URL as canonical:")
		p.writeTable(func(row func(...any)) {
			row("HOST", "SAME BODY", "CANONICAL", "OF PAGES")
			for _, d := range r.HostDuplicates {
				row(d.Host, d.DuplicateBodies, d.CanonicalElsewhere, d.PagesWithBody)
			}
		})
	}
	_, err := p.WriteTo(w)
	return err
}
