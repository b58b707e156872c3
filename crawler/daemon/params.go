package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage"
)

// A paramAnalysis looks through the output of a crawl for parameters that do not
// change what a page is. It reads the output twice, line by line; memory is
// bounded by subsets and maxParamPlaces, about 40 MB in all.
type paramAnalysis struct {
	onlyHost string // host; empty: all

	pagesByURL                *hashSampledMap[sampledPage] // by URL
	variantsByURLWithoutParam *hashSampledMap[pageWithParam]
	seenBodies                *hashSampledMap[struct{}] // by host and hash
	evidence                  map[paramKey]*paramEvidence
	duplicatesByHost          map[string]*hostDuplicates
	pageCount                 int
	skippedParamCount         int // parameters of places beyond maxParamPlaces
}

// A sampledPage is a page as it was at its last visit.
type sampledPage struct {
	bodyHash   uint64 // of its body
	isCompared bool
}

// A pageWithParam is a page that has a parameter.
type pageWithParam struct {
	fullURLHash, bodyHash uint64 // of its URL, of its body
	shownURL              string // as it is shown
}

// A paramKey is where a parameter is met: in a directory of a host.
type paramKey struct{ host, parameter, directory string }

// Bounds of a survey.
const (
	maxSampledKeys   = 100_000 // keys in each subset
	maxParamPlaces   = 20_000  // places, and hosts
	maxShownURLBytes = 300     // bytes of a URL that is shown
)

// A paramEvidence is the evidence on a parameter in one place. A pair is two pages
// whose URLs differ in the parameter only: in its value, or in having it.
type paramEvidence struct {
	SameBodyPairs          int       `json:"agree"`           // pairs with the same body
	DifferentBodyPairs     int       `json:"disagree"`        // pairs with another
	CanonicalsWithoutParam int       `json:"canonical_drops"` // pages whose canonical link leaves the parameter out
	CanonicalsWithParam    int       `json:"canonical_keeps"` // pages whose canonical link has it
	ExamplePair            [2]string `json:"example"`         // a pair that agrees, or a page and its canonical
}

// hostDuplicates counts pages of a host whose body is exactly that of another, and
// those that name another URL as canonical.
type hostDuplicates struct {
	Host               string `json:"host"`
	PagesWithBody      int    `json:"pages"`
	DuplicateBodies    int    `json:"duplicates"` // beyond the first of each body; estimated if Sampled is not 1
	CanonicalElsewhere int    `json:"canonical_elsewhere"`
}

// A recordedPage is what of a line of output is read.
type recordedPage struct {
	URL       string `json:"url"`
	Status    int    `json:"status"`
	Bytes     int    `json:"bytes"`
	SHA256    string `json:"sha256"`
	Canonical string `json:"canonical"`
	Source    string `json:"source"`
}

// readPages reads the output, and calls do for each page that has a body. Lines that
// are none are passed over: the last of a killed crawl may be cut.
func (s *paramAnalysis) readPages(ctx context.Context, r io.Reader, do func(decorum.URL, recordedPage, uint64)) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	var line []byte
	for {
		var err error
		line, err = readBatchLine(lines, line[:0])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLineTooLong):
			return err
		}
		var p recordedPage
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

// analyzeParams surveys an output: its file, and those that were full.
func analyzeParams(ctx context.Context, name, onlyHost string) (*paramAnalysis, error) {
	s := &paramAnalysis{onlyHost: onlyHost, pagesByURL: newHashSampledMap[sampledPage](), variantsByURLWithoutParam: newHashSampledMap[pageWithParam](), seenBodies: newHashSampledMap[struct{}](),
		evidence: map[paramKey]*paramEvidence{}, duplicatesByHost: map[string]*hostDuplicates{}}
	for _, do := range []func(decorum.URL, recordedPage, uint64){s.countPage, s.comparePage} {
		if err := forEachJSONLFile(name, func(r io.Reader) error { return s.readPages(ctx, r, do) }); err != nil {
			return nil, fmt.Errorf("cannot read the output of the crawl: %w", err)
		}
	}
	return s, nil
}

// countPage takes note of a page and its body. A page counts once: what the subset
// lets go of is known for a revisit by what the line says of it.
func (s *paramAnalysis) countPage(u decorum.URL, p recordedPage, hash uint64) {
	key := hashForSample(u.String())
	_, isRepeated := s.pagesByURL.get(key)
	isRepeated = isRepeated || !s.pagesByURL.accepts(key) && p.Source == storage.SourceRevisit.String()
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
		s.duplicatesByHost[host] = &hostDuplicates{Host: host}
	}
	s.duplicatesByHost[host].PagesWithBody++
	if p.Canonical != "" && p.Canonical != u.String() {
		s.duplicatesByHost[host].CanonicalElsewhere++
	}
	body := hashForSample(host + "\n" + fmt.Sprint(hash))
	if _, isDuplicate := s.seenBodies.get(body); isDuplicate {
		s.duplicatesByHost[host].DuplicateBodies += s.seenBodies.keysPerSampledKey()
	}
	s.seenBodies.put(body, struct{}{})
}

// comparePage compares a page with those that have one parameter less, or another
// value of it.
func (s *paramAnalysis) comparePage(u decorum.URL, p recordedPage, hash uint64) {
	key := hashForSample(u.String())
	if w, isSampled := s.pagesByURL.get(key); isSampled {
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
		evidence := s.evidenceFor(u, name)
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
func (s *paramAnalysis) compareVariants(evidence *paramEvidence, u decorum.URL, urlWithout, name string, hash uint64) {
	if pageWithoutParam, ok := s.pagesByURL.get(hashForSample(urlWithout)); ok {
		evidence.addPair(hash == pageWithoutParam.bodyHash, u.String(), urlWithout)
	}
	urlHash, key := hashForSample(u.String()), hashForSample(urlWithout+"\n"+name)
	otherVariant, ok := s.variantsByURLWithoutParam.get(key)
	switch {
	case !ok:
		s.variantsByURLWithoutParam.put(key, pageWithParam{urlHash, hash, truncateURL(u.String())})
	case otherVariant.fullURLHash != urlHash:
		evidence.addPair(hash == otherVariant.bodyHash, u.String(), otherVariant.shownURL)
	}
}

func (at *paramEvidence) addPair(agree bool, u, other string) {
	if !agree {
		at.DifferentBodyPairs++
		return
	}
	if at.SameBodyPairs++; at.ExamplePair[0] == "" {
		at.ExamplePair = [2]string{truncateURL(u), truncateURL(other)}
	}
}

// addCanonical counts what the page itself says of the parameter. A canonical link
// to another page says nothing of it.
func (at *paramEvidence) addCanonical(u decorum.URL, canonical, urlWithout, name string) {
	page, query, _ := strings.Cut(canonical, "?")
	ownPage, _, _ := strings.Cut(u.String(), "?")
	switch {
	case page != ownPage:
	case withoutParam(page, query, name) != canonical:
		at.CanonicalsWithParam++
	default:
		if at.CanonicalsWithoutParam++; at.ExamplePair[0] == "" {
			at.ExamplePair = [2]string{truncateURL(u.String()), truncateURL(canonical)}
		}
	}
}

// evidenceFor returns the evidence on a parameter where u is; nil if there is too
// much.
func (s *paramAnalysis) evidenceFor(u decorum.URL, parameter string) *paramEvidence {
	path, _, _ := strings.Cut(u.PathAndQuery(), "?")
	key := paramKey{u.Origin().Host(), parameter, path[:strings.LastIndexByte(path, '/')+1]}
	if s.evidence[key] == nil {
		if len(s.evidence) >= maxParamPlaces {
			s.skippedParamCount++
			return nil
		}
		s.evidence[key] = &paramEvidence{}
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

// printParamReport surveys the output of the crawl in a directory.
func (a *program) printParamReport(ctx context.Context, q reportOptions) error {
	host, err := parseHostFlag(q.host)
	if err != nil {
		return err
	}
	dir := stateDir(q.dataDir)
	if err := dir.requireCrawl(); err != nil {
		return err
	}
	d, err := readProjectSource(dir.path(projectFile))
	if err != nil {
		return err
	}
	name := d.Output.JSONL
	switch name {
	case "":
		name = dir.path(outputFile)
	case "-":
		return usage.Errorf("the crawl wrote its output to standard output: there is no file to read")
	}
	ctx, stop := a.withSignalCancel(ctx)
	defer stop()
	s, err := analyzeParams(ctx, name, host)
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return &exitError{ExitStopped, errInterrupted}
	case err != nil:
		return err
	}
	return s.report().write(a.stdout, q)
}
