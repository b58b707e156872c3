package inspect

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// maxParamPlaces is how many queryParamLocations, hosts and URLKindCosts an analysis keeps.
const maxParamPlaces = 20_000

// A QueryParamAnalysis searches the output of a crawl for query parameters that do not change the
// page. It reads the output twice, line by line. Samples of 100,000 keys and maxParamPlaces limit
// its memory to about 40 MB.
type QueryParamAnalysis struct {
	onlyHost string // host to analyze; empty: all

	pagesByURL               *hashSampledMap[sampledPage]               // by hash of the URL
	variantByURLWithoutParam *hashSampledMap[paramVariantSample]        // by hash of that URL and the parameter
	seenBodies               *hashSampledMap[struct{}]                  // by hash of host and body
	evidence                 map[queryParamLocation]*QueryParamEvidence // at most maxParamPlaces
	duplicatesByHost         map[string]*HostDuplicates                 // at most maxParamPlaces
	kindCosts                map[urlKindOnHost]*URLKindCost             // at most maxParamPlaces
	pageCount                int                                        // pages with a body, each counted once
	skippedParamCount        int                                        // parameters without evidence for lack of space
}

// A sampledPage is a page at its last visit.
type sampledPage struct {
	bodyHash   uint64
	isCompared bool // comparePage has seen the page
}

// A paramVariantSample is a page whose URL has a parameter.
type paramVariantSample struct {
	fullURLHash, bodyHash uint64
	shownURL              string // the URL, shortened for reports
}

// A queryParamLocation is a parameter of URLs in one directory of a host.
type queryParamLocation struct{ host, parameter, directory string }

// A QueryParamEvidence is the evidence for or against removing a parameter in one place. A pair is
// two pages whose URLs differ only in the parameter: in its value, or in its presence.
type QueryParamEvidence struct {
	SameBodyPairs          int       `json:"agree"`           // pairs with the same body
	DifferentBodyPairs     int       `json:"disagree"`        // pairs with different bodies
	CanonicalsWithoutParam int       `json:"canonical_drops"` // pages whose canonical link lacks the parameter
	CanonicalsWithParam    int       `json:"canonical_keeps"` // pages whose canonical link has the parameter
	ExamplePair            [2]string `json:"example"`         // a pair with the same body, or a page and its canonical
	differentPair          [2]string // a pair with different bodies, of a parameter that is named like a session ID
}

// HostDuplicates counts the pages of a host with the same body as another page, and the pages with
// another URL as their canonical one.
type HostDuplicates struct {
	Host               string `json:"host"`
	PagesWithBody      int    `json:"pages"`
	DuplicateBodies    int    `json:"duplicates"` // beyond the first of each body; estimated unless SampledOneIn is 1
	CanonicalElsewhere int    `json:"canonical_elsewhere"`
}

// A parsedOutputRecord holds the fields that the analysis reads from a line of output.
type parsedOutputRecord struct {
	URL         string `json:"url"`
	Status      int    `json:"status"`
	ContentType string `json:"content_type"`
	Bytes       int    `json:"bytes"`
	SHA256      string `json:"sha256"`
	Canonical   string `json:"canonical"`
	Referrer    string `json:"referrer"`
	URLSource   string `json:"source"`
}

// hasBody reports whether the record is of a page whose body arrived.
func (p *parsedOutputRecord) hasBody() bool {
	return p.Status == http.StatusOK && p.Bytes > 0 && p.SHA256 != ""
}

// forEachOutputRecord reads one file of output and calls do for each visit. It skips invalid lines: the
// last line of a killed crawl may be cut.
func (s *QueryParamAnalysis) forEachOutputRecord(ctx context.Context, r io.Reader,
	do func(decorum.URL, parsedOutputRecord)) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	var line []byte
	for {
		// Read a line. Too long a line is cut and so invalid; the last line comes with io.EOF.
		var err error
		line, err = plaintext.ReadLine(lines, line[:0])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, plaintext.ErrLineTooLong):
			return err
		}
		var p parsedOutputRecord
		if json.Unmarshal(line, &p) == nil {
			u, parseErr := decorum.ParseURL(p.URL)
			if parseErr == nil && (s.onlyHost == "" || u.Origin().Host() == s.onlyHost) {
				do(u, p)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

// AnalyzeParams analyzes the output in the file with that name and in its rotated files. onlyHost
// limits the analysis to one host; "" means all hosts.
func AnalyzeParams(ctx context.Context, name, onlyHost string) (*QueryParamAnalysis, error) {
	s := &QueryParamAnalysis{onlyHost: onlyHost, pagesByURL: newHashSampledMap[sampledPage](),
		variantByURLWithoutParam: newHashSampledMap[paramVariantSample](), seenBodies: newHashSampledMap[struct{}](),
		evidence: map[queryParamLocation]*QueryParamEvidence{}, duplicatesByHost: map[string]*HostDuplicates{},
		kindCosts: map[urlKindOnHost]*URLKindCost{}}
	for _, do := range []func(decorum.URL, parsedOutputRecord){s.countVisit, s.comparePage} {
		if err := sinks.ForEachJSONLFile(name, func(r io.Reader) error {
			return s.forEachOutputRecord(ctx, r, do)
		}); err != nil {
			return nil, fmt.Errorf("cannot read the output of the crawl: %w", err)
		}
	}
	return s, nil
}

// countVisit counts a visit and, if it is the first of a page with a body, the page, and records the hash
// of that. An earlier visit is recognized by pagesByURL, or, for a URL outside the sample, by the source
// "revisit" of the line.
func (s *QueryParamAnalysis) countVisit(u decorum.URL, p parsedOutputRecord) {
	kind := s.countURLKind(u, p)
	if !p.hasBody() {
		return
	}
	key, hash := hashForSample(u.String()), hashForSample(p.SHA256)
	_, isRepeated := s.pagesByURL.values[key]
	isRepeated = isRepeated || !s.pagesByURL.accepts(key) && p.URLSource == storage.SourceRevisit.String()
	s.pagesByURL.put(key, sampledPage{bodyHash: hash})
	if isRepeated {
		return
	}
	s.pageCount++
	host := u.Origin().Host()
	if s.duplicatesByHost[host] == nil {
		if len(s.duplicatesByHost) >= maxParamPlaces {
			return
		}
		s.duplicatesByHost[host] = &HostDuplicates{Host: host}
	}
	s.duplicatesByHost[host].PagesWithBody++
	if p.Canonical != "" && p.Canonical != u.String() {
		s.duplicatesByHost[host].CanonicalElsewhere++
	}
	// Each duplicate in the sample stands for as many as the sample leaves out.
	body := hashForSample(host + "\n" + fmt.Sprint(hash))
	if _, isDuplicate := s.seenBodies.values[body]; isDuplicate {
		s.duplicatesByHost[host].DuplicateBodies += s.seenBodies.keysPerSampledKey()
		if kind != nil {
			kind.DuplicateBodies += s.seenBodies.keysPerSampledKey()
		}
	}
	s.seenBodies.put(body, struct{}{})
}

// comparePage compares a page with the pages whose URL lacks one of its parameters or has another
// value of it.
func (s *QueryParamAnalysis) comparePage(u decorum.URL, p parsedOutputRecord) {
	if !p.hasBody() {
		return
	}
	// Compare each page once, as it was at its last visit.
	key, hash := hashForSample(u.String()), hashForSample(p.SHA256)
	if w, isSampled := s.pagesByURL.values[key]; isSampled {
		if w.bodyHash != hash || w.isCompared {
			return // a later visit changed the page, or the page was compared already
		}
		s.pagesByURL.put(key, sampledPage{hash, true})
	}
	page, query, ok := strings.Cut(u.String(), "?")
	if !ok {
		return
	}
	// Repeated parameters count once.
	var names []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		evidence := s.getOrCreateEvidence(u, name)
		if evidence == nil {
			continue
		}
		urlWithout := withoutParam(page, query, name)
		s.compareVariants(evidence, u, urlWithout, name, hash)
		evidence.addCanonical(u, p.Canonical, urlWithout, name)
	}
}

// compareVariants compares u with the page without the parameter, and with an earlier page that has
// another value of it.
func (s *QueryParamAnalysis) compareVariants(evidence *QueryParamEvidence, u decorum.URL, urlWithout,
	name string, hash uint64) {
	if pageWithoutParam, ok := s.pagesByURL.values[hashForSample(urlWithout)]; ok {
		evidence.addBodyComparison(hash == pageWithoutParam.bodyHash, u.String(), urlWithout)
	}
	urlHash, key := hashForSample(u.String()), hashForSample(urlWithout+"\n"+name)
	otherVariant, ok := s.variantByURLWithoutParam.values[key]
	switch {
	case !ok:
		s.variantByURLWithoutParam.put(key, paramVariantSample{urlHash, hash, plaintext.TruncateURL(u.String())})
	case otherVariant.fullURLHash != urlHash:
		evidence.addBodyComparison(hash == otherVariant.bodyHash, u.String(), otherVariant.shownURL)
		if evidence.differentPair[0] == "" && hash != otherVariant.bodyHash && frontier.IsSessionIDName(name) {
			evidence.differentPair = [2]string{plaintext.TruncateURL(u.String()), otherVariant.shownURL}
		}
	}
}

// addBodyComparison counts a pair of pages. agree reports whether their bodies are the same.
func (at *QueryParamEvidence) addBodyComparison(agree bool, u, other string) {
	if !agree {
		at.DifferentBodyPairs++
		return
	}
	if at.SameBodyPairs++; at.ExamplePair[0] == "" {
		at.ExamplePair = [2]string{plaintext.TruncateURL(u), plaintext.TruncateURL(other)}
	}
}

// addCanonical counts whether the canonical link of u keeps the parameter. A canonical link to
// another page does not count.
func (at *QueryParamEvidence) addCanonical(u decorum.URL, canonical, urlWithout, name string) {
	page, query, _ := strings.Cut(canonical, "?")
	ownPage, _, _ := strings.Cut(u.String(), "?")
	switch {
	case page != ownPage:
	case withoutParam(page, query, name) != canonical:
		at.CanonicalsWithParam++
	default:
		if at.CanonicalsWithoutParam++; at.ExamplePair[0] == "" {
			at.ExamplePair = [2]string{plaintext.TruncateURL(u.String()), plaintext.TruncateURL(canonical)}
		}
	}
}

// getOrCreateEvidence returns the evidence on a parameter in the directory of u, or nil if the
// analysis has maxParamPlaces already.
func (s *QueryParamAnalysis) getOrCreateEvidence(u decorum.URL, parameter string) *QueryParamEvidence {
	path, _, _ := strings.Cut(u.PathAndQuery(), "?")
	key := queryParamLocation{u.Origin().Host(), parameter, path[:strings.LastIndexByte(path, '/')+1]}
	if s.evidence[key] == nil {
		if len(s.evidence) >= maxParamPlaces {
			s.skippedParamCount++
			return nil
		}
		s.evidence[key] = &QueryParamEvidence{}
	}
	return s.evidence[key]
}

// withoutParam returns the URL page?query without the parameters called name.
func withoutParam(page, query, name string) string {
	var rest []string
	for parameter := range strings.SplitSeq(query, "&") {
		if n, _, _ := strings.Cut(parameter, "="); n != name && parameter != "" {
			rest = append(rest, parameter)
		}
	}
	if len(rest) == 0 {
		return page
	}
	return page + "?" + strings.Join(rest, "&")
}

// favorsDropping reports whether the evidence is strong enough to suggest removing the parameter.
func (at *QueryParamEvidence) favorsDropping() bool {
	forDropping, againstDropping := at.SameBodyPairs+at.CanonicalsWithoutParam,
		at.DifferentBodyPairs+at.CanonicalsWithParam
	return forDropping >= minEvidence && forDropping >= minEvidenceRatio*againstDropping
}

// merge adds the evidence of another place.
func (at *QueryParamEvidence) merge(more *QueryParamEvidence) {
	at.SameBodyPairs += more.SameBodyPairs
	at.DifferentBodyPairs += more.DifferentBodyPairs
	at.CanonicalsWithoutParam += more.CanonicalsWithoutParam
	at.CanonicalsWithParam += more.CanonicalsWithParam
	if at.ExamplePair[0] == "" {
		at.ExamplePair = more.ExamplePair
	}
	if at.differentPair[0] == "" {
		at.differentPair = more.differentPair
	}
}

// Report returns the suggestions of the analysis. It merges the places of a host's parameter unless
// one of them has evidence against removing it; then each place is a suggestion by itself.
func (s *QueryParamAnalysis) Report() *QueryParamReport {
	r := &QueryParamReport{PagesWithBody: s.pageCount,
		SampledOneIn:  max(s.pagesByURL.keysPerSampledKey(), s.variantByURLWithoutParam.keysPerSampledKey()),
		SkippedParams: s.skippedParamCount,
		Suggestions:   []QueryParamSuggestion{}, HostDuplicates: []*HostDuplicates{},
		URLKindCosts: s.reportURLKindCosts()}
	// Find the parameters with evidence against removing them in some place.
	merged := map[queryParamLocation]*QueryParamSuggestion{}
	isMixed := map[queryParamLocation]bool{}
	for key, at := range s.evidence {
		hostParam := queryParamLocation{host: key.host, parameter: key.parameter}
		if at.DifferentBodyPairs+at.CanonicalsWithParam > 0 && !at.favorsDropping() {
			isMixed[hostParam] = true
		}
	}
	// Merge the places of all other parameters.
	for key, at := range s.evidence {
		group := queryParamLocation{host: key.host, parameter: key.parameter}
		if isMixed[group] {
			group.directory = key.directory
		}
		if merged[group] == nil {
			merged[group] = &QueryParamSuggestion{Host: key.host, Parameter: key.parameter, PathPrefix: key.directory}
		}
		merged[group].PathPrefix = commonDirectory(merged[group].PathPrefix, key.directory)
		merged[group].merge(at)
	}
	// Suggest those with some evidence for removing them, with a line of robots.txt if it is strong.
	for _, m := range merged {
		m.MayBeSessionID = frontier.IsSessionIDName(m.Parameter)
		switch {
		case m.SameBodyPairs+m.CanonicalsWithoutParam > 0:
		case m.MayBeSessionID && m.CanonicalsWithParam == 0 && m.differentPair[0] != "":
			m.ExamplePair = m.differentPair // bodies differ by the session IDs in their links
		default:
			continue
		}
		if m.favorsDropping() {
			m.CleanParam = "Clean-param: " + m.Parameter + " " + m.PathPrefix
		}
		r.Suggestions = append(r.Suggestions, *m)
	}
	slices.SortFunc(r.Suggestions, QueryParamSuggestion.compare)
	for _, d := range s.duplicatesByHost {
		if d.DuplicateBodies+d.CanonicalElsewhere > 0 {
			r.HostDuplicates = append(r.HostDuplicates, d)
		}
	}
	slices.SortFunc(r.HostDuplicates, func(a, b *HostDuplicates) int {
		return cmp.Or(cmp.Compare(b.DuplicateBodies+b.CanonicalElsewhere, a.DuplicateBodies+a.CanonicalElsewhere),
			strings.Compare(a.Host, b.Host))
	})
	return r
}

// A QueryParamReport is the result of a QueryParamAnalysis. The crawl does not apply its
// suggestions.
type QueryParamReport struct {
	PagesWithBody  int                    `json:"pages"`
	SampledOneIn   int                    `json:"one_in"` // one of this many URLs was compared with others
	Suggestions    []QueryParamSuggestion `json:"suggestions"`
	HostDuplicates []*HostDuplicates      `json:"duplicates"` // of hosts with duplicates, most first
	URLKindCosts   []URLKindCost          `json:"url_kinds"`  // of links that sort lists, and of feeds
	SkippedParams  int                    `json:"skipped"`    // parameters beyond maxParamPlaces, without analysis
}

// A QueryParamSuggestion is a parameter that probably does not change pages.
type QueryParamSuggestion struct {
	Host       string `json:"host"`
	Parameter  string `json:"parameter"`
	PathPrefix string `json:"path"` // directory of the pages
	QueryParamEvidence
	// MayBeSessionID says that the parameter is named like a session ID. Then a pair with different bodies
	// may differ only by the IDs in its links, and makes a suggestion without a line.
	MayBeSessionID bool   `json:"may_be_session_id,omitempty"`
	CleanParam     string `json:"clean_param,omitempty"` // the line for robots.txt; empty: the evidence is too weak
}

const (
	// minEvidence is how many pairs or canonical links for removing a parameter a CleanParam line
	// needs.
	minEvidence = 3
	// minEvidenceRatio is how many times more evidence it needs for removing than against it.
	minEvidenceRatio = 50
)

// compare orders suggestions: first those with a CleanParam line, then those with the most evidence.
func (m QueryParamSuggestion) compare(n QueryParamSuggestion) int {
	weak := func(s QueryParamSuggestion) int {
		if s.CleanParam == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(weak(m)-weak(n), cmp.Compare(n.SameBodyPairs+n.CanonicalsWithoutParam,
		m.SameBodyPairs+m.CanonicalsWithoutParam),
		strings.Compare(m.Host, n.Host), strings.Compare(m.Parameter, n.Parameter),
		strings.Compare(m.PathPrefix, n.PathPrefix))
}

// commonDirectory returns the longest directory that contains directories a and b.
func commonDirectory(a, b string) string {
	for !strings.HasPrefix(b, a) {
		a = a[:strings.LastIndexByte(a[:len(a)-1], '/')+1]
	}
	return a
}
