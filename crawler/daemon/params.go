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
	"github.com/decorum-crawler/decorum/storage"
)

// A paramSurvey looks through the output of a crawl for parameters that do not
// change what a page is. It reads the output twice, line by line; memory is
// bounded by subsets and maxParamPlaces, about 40 MB in all.
type paramSurvey struct {
	only string // host; empty: all

	wholes   *subset[whole] // by URL
	variants *subset[variant]
	bodies   *subset[struct{}] // by host and hash
	places   map[paramKey]*paramPlace
	hosts    map[string]*duplicates
	pages    int
	skipped  int // parameters of places beyond maxParamPlaces
}

// A whole is a page as it was at its last visit.
type whole struct {
	hash     uint64 // of its body
	compared bool
}

// A variant is a page that has a parameter.
type variant struct {
	page, hash uint64 // of its URL, of its body
	url        string // as it is shown
}

// A paramKey is where a parameter is met: in a directory of a host.
type paramKey struct{ host, parameter, directory string }

// Bounds of a survey.
const (
	maxSampledKeys   = 100_000 // keys in each subset
	maxParamPlaces   = 20_000  // places, and hosts
	maxShownURLBytes = 300     // bytes of a URL that is shown
)

// A paramPlace is the evidence on a parameter in one place. A pair is two pages
// whose URLs differ in the parameter only: in its value, or in having it.
type paramPlace struct {
	Agree    int       `json:"agree"`           // pairs with the same body
	Disagree int       `json:"disagree"`        // pairs with another
	Drops    int       `json:"canonical_drops"` // pages whose canonical link leaves the parameter out
	Keeps    int       `json:"canonical_keeps"` // pages whose canonical link has it
	Example  [2]string `json:"example"`         // a pair that agrees, or a page and its canonical
}

// duplicates counts pages of a host whose body is exactly that of another, and
// those that name another URL as canonical.
type duplicates struct {
	Host       string `json:"host"`
	Pages      int    `json:"pages"`
	Duplicates int    `json:"duplicates"` // beyond the first of each body; estimated if Sampled is not 1
	Renamed    int    `json:"canonical_elsewhere"`
}

// An outputPage is what of a line of output is read.
type outputPage struct {
	URL       string `json:"url"`
	Status    int    `json:"status"`
	Bytes     int    `json:"bytes"`
	SHA256    string `json:"sha256"`
	Canonical string `json:"canonical"`
	Source    string `json:"source"`
}

// read reads the output, and calls do for each page that has a body. Lines that
// are none are passed over: the last of a killed crawl may be cut.
func (s *paramSurvey) read(ctx context.Context, r io.Reader, do func(decorum.URL, outputPage, uint64)) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	var line []byte
	for {
		var err error
		line, err = readBatchLine(lines, line[:0])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLongQuestion):
			return err
		}
		var p outputPage
		if json.Unmarshal(line, &p) == nil && p.Status == http.StatusOK && p.Bytes > 0 && p.SHA256 != "" {
			u, bad := decorum.ParseURL(p.URL)
			if bad == nil && (s.only == "" || u.Origin().Host() == s.only) {
				do(u, p, fingerprint(p.SHA256))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

// surveyParams surveys an output: its file, and those that were full.
func surveyParams(ctx context.Context, name, only string) (*paramSurvey, error) {
	s := &paramSurvey{only: only, wholes: newSubset[whole](), variants: newSubset[variant](), bodies: newSubset[struct{}](),
		places: map[paramKey]*paramPlace{}, hosts: map[string]*duplicates{}}
	for _, do := range []func(decorum.URL, outputPage, uint64){s.note, s.compare} {
		if err := readJSONLFiles(name, func(r io.Reader) error { return s.read(ctx, r, do) }); err != nil {
			return nil, fmt.Errorf("cannot read the output of the crawl: %w", err)
		}
	}
	return s, nil
}

// note takes note of a page and its body. A page counts once: what the subset
// lets go of is known for a revisit by what the line says of it.
func (s *paramSurvey) note(u decorum.URL, p outputPage, hash uint64) {
	key := fingerprint(u.String())
	_, again := s.wholes.get(key)
	again = again || !s.wholes.takes(key) && p.Source == storage.Revisit.String()
	s.wholes.put(key, whole{hash: hash})
	if again {
		return
	}
	s.pages++
	host := u.Origin().Host()
	if s.hosts[host] == nil {
		if len(s.hosts) >= maxParamPlaces {
			return
		}
		s.hosts[host] = &duplicates{Host: host}
	}
	s.hosts[host].Pages++
	if p.Canonical != "" && p.Canonical != u.String() {
		s.hosts[host].Renamed++
	}
	body := fingerprint(host + "\n" + fmt.Sprint(hash))
	if _, same := s.bodies.get(body); same {
		s.hosts[host].Duplicates += s.bodies.each()
	}
	s.bodies.put(body, struct{}{})
}

// compare compares a page with those that have one parameter less, or another
// value of it.
func (s *paramSurvey) compare(u decorum.URL, p outputPage, hash uint64) {
	own := fingerprint(u.String())
	if w, known := s.wholes.get(own); known {
		if w.hash != hash || w.compared {
			return // it was visited again
		}
		s.wholes.put(own, whole{hash, true})
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
		at := s.place(u, name)
		if at == nil {
			continue
		}
		rest := withoutParam(page, query, name)
		s.pair(at, u, rest, name, hash)
		at.canonical(u, p.Canonical, rest, name)
	}
}

// pair compares u with the page without the parameter, and with one of another
// value.
func (s *paramSurvey) pair(at *paramPlace, u decorum.URL, rest, name string, hash uint64) {
	if bare, ok := s.wholes.get(fingerprint(rest)); ok {
		at.count(hash == bare.hash, u.String(), rest)
	}
	own, key := fingerprint(u.String()), fingerprint(rest+"\n"+name)
	other, ok := s.variants.get(key)
	switch {
	case !ok:
		s.variants.put(key, variant{own, hash, shown(u.String())})
	case other.page != own:
		at.count(hash == other.hash, u.String(), other.url)
	}
}

func (at *paramPlace) count(agree bool, u, other string) {
	if !agree {
		at.Disagree++
		return
	}
	if at.Agree++; at.Example[0] == "" {
		at.Example = [2]string{shown(u), shown(other)}
	}
}

// canonical counts what the page itself says of the parameter. A canonical link
// to another page says nothing of it.
func (at *paramPlace) canonical(u decorum.URL, canonical, rest, name string) {
	page, query, _ := strings.Cut(canonical, "?")
	own, _, _ := strings.Cut(u.String(), "?")
	switch {
	case page != own:
	case withoutParam(page, query, name) != canonical:
		at.Keeps++
	default:
		if at.Drops++; at.Example[0] == "" {
			at.Example = [2]string{shown(u.String()), shown(canonical)}
		}
	}
}

// place returns the evidence on a parameter where u is; nil if there is too
// much.
func (s *paramSurvey) place(u decorum.URL, parameter string) *paramPlace {
	path, _, _ := strings.Cut(u.Path(), "?")
	key := paramKey{u.Origin().Host(), parameter, path[:strings.LastIndexByte(path, '/')+1]}
	if s.places[key] == nil {
		if len(s.places) >= maxParamPlaces {
			s.skipped++
			return nil
		}
		s.places[key] = &paramPlace{}
	}
	return s.places[key]
}

// shown returns as much of a URL as is shown.
func shown(u string) string { return u[:min(len(u), maxShownURLBytes)] }

// withoutParam returns the URL page?query without the parameters of a name.
func withoutParam(page, query, name string) string {
	var kept []string
	for parameter := range strings.SplitSeq(query, "&") {
		if n, _, _ := strings.Cut(parameter, "="); n != name && parameter != "" {
			kept = append(kept, parameter)
		}
	}
	if len(kept) == 0 {
		return page
	}
	return page + "?" + strings.Join(kept, "&")
}

// paramsOf surveys the output of the crawl in a directory.
func (a *app) paramsOf(ctx context.Context, q reportQuery) error {
	host, err := hostFlag(q.host)
	if err != nil {
		return err
	}
	dir := stateDir(q.data)
	if err := dir.mustHoldCrawl(); err != nil {
		return err
	}
	d, err := readDraft(dir.path(projectFile))
	if err != nil {
		return err
	}
	name := d.Output.JSONL
	switch name {
	case "":
		name = dir.path(outputFile)
	case "-":
		return usage("the crawl wrote its output to standard output: there is no file to read")
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	s, err := surveyParams(ctx, name, host)
	switch {
	case errors.Is(context.Cause(ctx), errSignal):
		return &exit{ExitStopped, errSignal}
	case err != nil:
		return err
	}
	return s.report().write(a.stdout, q)
}
