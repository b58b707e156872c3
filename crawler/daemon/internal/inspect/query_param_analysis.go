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
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// maxParamPlaces is how many places, and how many hosts, an analysis keeps.
const maxParamPlaces = 20_000

// A QueryParamAnalysis looks through the output of a crawl for parameters that do not
// change what a page is. It reads the output twice, line by line; memory is
// bounded by subsets and maxParamPlaces, about 40 MB in all.
type QueryParamAnalysis struct {
	onlyHost string // host; empty: all

	pagesByURL               *hashSampledMap[sampledPage] // by URL
	variantByURLWithoutParam *hashSampledMap[paramVariantSample]
	seenBodies               *hashSampledMap[struct{}] // by host and hash
	evidence                 map[queryParamLocation]*QueryParamEvidence
	duplicatesByHost         map[string]*HostDuplicates
	pageCount                int
	skippedParamCount        int // parameters of places beyond maxParamPlaces
}

// A sampledPage is a page as it was at its last visit.
type sampledPage struct {
	bodyHash   uint64 // of its body
	isCompared bool
}

// A paramVariantSample is a page that has a parameter.
type paramVariantSample struct {
	fullURLHash, bodyHash uint64 // of its URL, of its body
	shownURL              string // as it is shown
}

// A queryParamLocation is where a parameter is met: in a directory of a host.
type queryParamLocation struct{ host, parameter, directory string }

// A QueryParamEvidence is the evidence on a parameter in one place. A pair is two pages
// whose URLs differ in the parameter only: in its value, or in having it.
type QueryParamEvidence struct {
	SameBodyPairs          int       `json:"agree"`           // pairs with the same body
	DifferentBodyPairs     int       `json:"disagree"`        // pairs with another
	CanonicalsWithoutParam int       `json:"canonical_drops"` // pages whose canonical link leaves the parameter out
	CanonicalsWithParam    int       `json:"canonical_keeps"` // pages whose canonical link has it
	ExamplePair            [2]string `json:"example"`         // a pair that agrees, or a page and its canonical
}

// HostDuplicates counts pages of a host whose body is exactly that of another, and
// those that name another URL as canonical.
type HostDuplicates struct {
	Host               string `json:"host"`
	PagesWithBody      int    `json:"pages"`
	DuplicateBodies    int    `json:"duplicates"` // beyond the first of each body; estimated if Sampled is not 1
	CanonicalElsewhere int    `json:"canonical_elsewhere"`
}

// A parsedOutputRecord is what of a line of output is read.
type parsedOutputRecord struct {
	URL       string `json:"url"`
	Status    int    `json:"status"`
	Bytes     int    `json:"bytes"`
	SHA256    string `json:"sha256"`
	Canonical string `json:"canonical"`
	URLSource string `json:"source"`
}

// forEachOutputPage reads the output, and calls do for each page that has a body. Lines that
// are none are passed over: the last of a killed crawl may be cut.
func (s *QueryParamAnalysis) forEachOutputPage(ctx context.Context, r io.Reader, do func(decorum.URL, parsedOutputRecord, uint64)) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	var line []byte
	for {
		var err error
		line, err = plaintext.ReadLine(lines, line[:0])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, plaintext.ErrLineTooLong):
			return err
		}
		var p parsedOutputRecord
		if json.Unmarshal(line, &p) == nil && p.Status == http.StatusOK && p.Bytes > 0 && p.SHA256 != "" {
			u, parseErr := decorum.ParseURL(p.URL)
			if parseErr == nil && (s.onlyHost == "" || u.Origin().Host() == s.onlyHost) {
				do(u, p, hashForSample(p.SHA256))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

// AnalyzeParams surveys an output: its file, and those that were full.
func AnalyzeParams(ctx context.Context, name, onlyHost string) (*QueryParamAnalysis, error) {
	s := &QueryParamAnalysis{onlyHost: onlyHost, pagesByURL: newHashSampledMap[sampledPage](), variantByURLWithoutParam: newHashSampledMap[paramVariantSample](), seenBodies: newHashSampledMap[struct{}](),
		evidence: map[queryParamLocation]*QueryParamEvidence{}, duplicatesByHost: map[string]*HostDuplicates{}}
	for _, do := range []func(decorum.URL, parsedOutputRecord, uint64){s.countPage, s.comparePage} {
		if err := sinks.ForEachJSONLFile(name, func(r io.Reader) error { return s.forEachOutputPage(ctx, r, do) }); err != nil {
			return nil, fmt.Errorf("cannot read the output of the crawl: %w", err)
		}
	}
	return s, nil
}

// countPage takes note of a page and its body. A page counts once: what the subset
// lets go of is known for a revisit by what the line says of it.
func (s *QueryParamAnalysis) countPage(u decorum.URL, p parsedOutputRecord, hash uint64) {
	key := hashForSample(u.String())
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
	body := hashForSample(host + "\n" + fmt.Sprint(hash))
	if _, isDuplicate := s.seenBodies.values[body]; isDuplicate {
		s.duplicatesByHost[host].DuplicateBodies += s.seenBodies.keysPerSampledKey()
	}
	s.seenBodies.put(body, struct{}{})
}

// comparePage compares a page with those that have one parameter less, or another
// value of it.
func (s *QueryParamAnalysis) comparePage(u decorum.URL, p parsedOutputRecord, hash uint64) {
	key := hashForSample(u.String())
	if w, isSampled := s.pagesByURL.values[key]; isSampled {
		if w.bodyHash != hash || w.isCompared {
			return // it was visited again
		}
		s.pagesByURL.put(key, sampledPage{hash, true})
	}
	page, query, ok := strings.Cut(u.String(), "?")
	if !ok {
		return
	}
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

// compareVariants compares u with the page without the parameter, and with one of another
// value.
func (s *QueryParamAnalysis) compareVariants(evidence *QueryParamEvidence, u decorum.URL, urlWithout, name string, hash uint64) {
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
	}
}

func (at *QueryParamEvidence) addBodyComparison(agree bool, u, other string) {
	if !agree {
		at.DifferentBodyPairs++
		return
	}
	if at.SameBodyPairs++; at.ExamplePair[0] == "" {
		at.ExamplePair = [2]string{plaintext.TruncateURL(u), plaintext.TruncateURL(other)}
	}
}

// addCanonical counts what the page itself says of the parameter. A canonical link
// to another page says nothing of it.
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

// getOrCreateEvidence returns the evidence on a parameter where u is; nil if there is too
// much.
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

// withoutParam returns the URL page?query without the parameters of a name.
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

// favorsDropping reports whether the evidence speaks for taking the parameter off.
func (at *QueryParamEvidence) favorsDropping() bool {
	forDropping, againstDropping := at.SameBodyPairs+at.CanonicalsWithoutParam, at.DifferentBodyPairs+at.CanonicalsWithParam
	return forDropping >= minEvidence && forDropping >= minEvidenceRatio*againstDropping
}

func (at *QueryParamEvidence) merge(more *QueryParamEvidence) {
	at.SameBodyPairs += more.SameBodyPairs
	at.DifferentBodyPairs += more.DifferentBodyPairs
	at.CanonicalsWithoutParam += more.CanonicalsWithoutParam
	at.CanonicalsWithParam += more.CanonicalsWithParam
	if at.ExamplePair[0] == "" {
		at.ExamplePair = more.ExamplePair
	}
}

// Report returns what the survey suggests: places of a parameter are one if
// the evidence agrees in all of them, and else each stands alone.
func (s *QueryParamAnalysis) Report() *QueryParamReport {
	r := &QueryParamReport{PagesWithBody: s.pageCount, SampledOneIn: max(s.pagesByURL.keysPerSampledKey(), s.variantByURLWithoutParam.keysPerSampledKey()), SkippedParams: s.skippedParamCount,
		Suggestions: []QueryParamSuggestion{}, HostDuplicates: []*HostDuplicates{}}
	merged := map[queryParamLocation]*QueryParamSuggestion{}
	isMixed := map[queryParamLocation]bool{}
	for key, at := range s.evidence {
		hostParam := queryParamLocation{host: key.host, parameter: key.parameter}
		if at.DifferentBodyPairs+at.CanonicalsWithParam > 0 && !at.favorsDropping() {
			isMixed[hostParam] = true
		}
	}
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
	for _, m := range merged {
		if m.SameBodyPairs+m.CanonicalsWithoutParam == 0 {
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
		return cmp.Or(cmp.Compare(b.DuplicateBodies+b.CanonicalElsewhere, a.DuplicateBodies+a.CanonicalElsewhere), strings.Compare(a.Host, b.Host))
	})
	return r
}

// A QueryParamReport is what a survey of parameters suggests. Nothing of it is applied
// by itself.
type QueryParamReport struct {
	PagesWithBody  int                    `json:"pages"`  // with a body
	SampledOneIn   int                    `json:"one_in"` // of so many URLs, one was compared with others
	Suggestions    []QueryParamSuggestion `json:"suggestions"`
	HostDuplicates []*HostDuplicates      `json:"duplicates"` // of hosts that have any, most first
	SkippedParams  int                    `json:"skipped"`    // parameters met in too many places to be counted
}

// A QueryParamSuggestion is a parameter that seems not to matter somewhere.
type QueryParamSuggestion struct {
	Host       string `json:"host"`
	Parameter  string `json:"parameter"`
	PathPrefix string `json:"path"` // what paths there begin with
	QueryParamEvidence
	CleanParam string `json:"clean_param,omitempty"` // the line one could write; empty: the evidence is too weak
}

// How strong the evidence must be for a line: so many pairs or canonical links,
// and so many times more of them for it than against it.
const (
	minEvidence      = 3
	minEvidenceRatio = 50
)

// compare puts first what a line can be written of, and of that what takes most.
func (m QueryParamSuggestion) compare(n QueryParamSuggestion) int {
	weak := func(s QueryParamSuggestion) int {
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
