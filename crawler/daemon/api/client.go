package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/storage/ledger"
)

// maxResponseBytes is how much of an answer a Client reads, in bytes.
const maxResponseBytes = 256 << 20

// A Client speaks to a daemon's API. Its methods are some of Daemon's, and may be
// called at the same time. What the daemon refuses is a *Problem.
type Client struct {
	Server string       // as http://127.0.0.1:8470
	Token  string       // of a role that may make the calls; empty: HTTP uses the daemon's socket
	HTTP   *http.Client // nil: http.DefaultClient
}

// Projects returns all projects.
func (c *Client) Projects(ctx context.Context) (all []Project, err error) {
	return all, c.getJSON(ctx, projectsPath, &all)
}

// PutProject makes a project, or changes it.
func (c *Client) PutProject(ctx context.Context, name string, file []byte) error {
	return c.sendRequest(ctx, http.MethodPut, projectsPath+"/"+url.PathEscape(name), file, http.Header{"Content-Type": {yamlTypes[0]}}, nil)
}

// ControlProject asks a project for a state.
func (c *Client) ControlProject(ctx context.Context, name string, a ProjectAction) error {
	return c.sendRequest(ctx, http.MethodPost, projectAPIPath(name, string(a)), nil, nil, nil)
}

// Hosts returns a part of the hosts of a project.
func (c *Client) Hosts(ctx context.Context, name string, q HostQuery) (page *HostListPage, err error) {
	order := "asc"
	if q.Descending {
		order = "desc"
	}
	path := projectAPIPath(name, "hosts", "q", q.Search, "state", q.State, "sort", q.Sort, "order", order,
		"offset", strconv.Itoa(q.Offset), "limit", strconv.Itoa(cmp.Or(q.Limit, defaultHostLimit)))
	return page, c.getJSON(ctx, path, &page)
}

// ProjectActiveVisits returns the visits in hand.
func (c *Client) ProjectActiveVisits(ctx context.Context, name string) (all []ActiveVisit, err error) {
	return all, c.getJSON(ctx, projectAPIPath(name, "visits"), &all)
}

// ProjectThroughput returns what a project did lately.
func (c *Client) ProjectThroughput(ctx context.Context, name string, coarse bool) (all []ThroughputSample, err error) {
	return all, c.getJSON(ctx, projectAPIPath(name, "throughput", "coarse", strconv.FormatBool(coarse)), &all)
}

// Brakes returns the brakes that are on.
func (c *Client) Brakes(ctx context.Context) (all []Brake, err error) {
	return all, c.getJSON(ctx, brakesPath, &all)
}

// SetBrake stops or slows a host, and returns the brake that is on it then.
func (c *Client) SetBrake(ctx context.Context, host string, o BrakeRequest) (b *Brake, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return b, c.sendRequest(ctx, http.MethodPut, brakesPath+"/"+url.PathEscape(host), body, header, &b)
}

// LiftBrake takes a brake off; reason is for the audit.
func (c *Client) LiftBrake(ctx context.Context, host, reason string) error {
	return c.sendRequest(ctx, http.MethodDelete, brakesPath+"/"+url.PathEscape(host), nil, http.Header{reasonHeader: {reason}}, nil)
}

// projectAPIPath returns the path of a call about a project, with the parameters that are not
// empty.
func projectAPIPath(name, rest string, namesAndValues ...string) string {
	path := projectsPath + "/" + url.PathEscape(name) + "/" + rest
	params := url.Values{}
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			params.Set(pair[0], pair[1])
		}
	}
	if len(params) > 0 {
		path += "?" + params.Encode()
	}
	return path
}

// getJSON asks for what is at path, and reads the answer into the value that into points at.
func (c *Client) getJSON(ctx context.Context, path string, into any) error {
	return c.sendRequest(ctx, http.MethodGet, path, nil, nil, into)
}

// open makes a call and returns the answer, whose body the caller closes.
func (c *Client) open(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Server, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, header)
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return cmp.Or(c.HTTP, http.DefaultClient).Do(r)
}

// sendRequest makes a call, and reads the answer into the value that into points at, unless that
// is nil.
func (c *Client) sendRequest(ctx context.Context, method, path string, body []byte, header http.Header, into any) error {
	res, err := c.open(ctx, method, path, body, header)
	if err != nil {
		return err
	}
	return readResponse(res, into)
}

// readResponse reads an answer, and closes its body.
func readResponse(res *http.Response, into any) error {
	respBody, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		p := &Problem{}
		media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if media != "application/problem+json" || json.Unmarshal(respBody, p) != nil {
			return newProblem(res.StatusCode, "%s is no daemon's answer: %s", res.Request.URL, res.Status)
		}
		return p
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(respBody, into); err != nil {
		return fmt.Errorf("%s is no daemon's answer: %w", res.Request.URL, err)
	}
	return nil
}

// Crawl returns an Inspector that asks the daemon about a project, or, where the server is a
// crawl in the foreground, about the project CrawlName.
func (c *Client) Crawl(name string) Inspector { return crawlClient{c, name} }

// A crawlClient is the Inspector of a crawl that another process runs.
type crawlClient struct {
	client *Client
	name   string
}

// Report is part of Inspector. The hosts arrive while use reads them.
func (c crawlClient) Report(ctx context.Context, q ReportQuery, use func(*StreamedReport) error) error {
	path := projectAPIPath(c.name, "report", "host", q.Host, "limit", strconv.Itoa(q.Limit))
	decode, body, err := c.client.openLines(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	s := &StreamedReport{Hosts: decodedLines[Host](decode)}
	switch err := decode(&s.Totals); {
	case err == io.EOF:
		return fmt.Errorf("%s%s is no daemon's answer: it is empty", c.client.Server, path)
	case err != nil:
		return err
	}
	return use(s)
}

// ExplainURL is part of Inspector.
func (c crawlClient) ExplainURL(ctx context.Context, u string) (e *URLExplanation, err error) {
	return e, c.client.getJSON(ctx, projectAPIPath(c.name, "explain", "url", u), &e)
}

// FrontierStats is part of Inspector.
func (c crawlClient) FrontierStats(ctx context.Context) (s *FrontierStats, err error) {
	return s, c.client.getJSON(ctx, projectAPIPath(c.name, "frontier"), &s)
}

// FrontierURLs is part of Inspector.
func (c crawlClient) FrontierURLs(ctx context.Context, q FrontierURLQuery) iter.Seq2[*FrontierURL, error] {
	return streamLines[FrontierURL](ctx, c.client, projectAPIPath(c.name, "frontier/urls",
		"host", q.Host, "origin", q.Origin, "state", q.State, "limit", strconv.Itoa(q.Limit)))
}

// LedgerRecords is part of Inspector.
func (c crawlClient) LedgerRecords(ctx context.Context, q LedgerQuery) iter.Seq2[*ledger.Record, error] {
	return streamLines[ledger.Record](ctx, c.client, projectAPIPath(c.name, "ledger", "url", q.URL, "host", q.Host))
}

// maxAddBodyBytes is how much of the lines one call of AddURLs sends, about, in bytes.
const maxAddBodyBytes = 1 << 20

// lastAddTimeout is how long AddURLs goes on when its context has ended.
const lastAddTimeout = 5 * time.Second

// AddURLs is part of Inspector. It makes a call for each MiB of lines, so that no call waits
// for somebody who types them.
func (c crawlClient) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*AddURLsResult, error) {
	// A signal ends lines, and leaves the call that is made some time: what it takes is counted.
	sendCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastAddTimeout, cancel) })()
	total := &AddURLsResult{}
	var body bytes.Buffer
	send := func() error {
		added := &AddURLsResult{}
		header := http.Header{"Content-Type": {jsonLinesType}}
		err := c.client.sendRequest(sendCtx, http.MethodPost, projectAPIPath(c.name, "urls"), body.Bytes(), header, added)
		var p *Problem
		if errors.As(err, &p) && p.PartialResult != nil {
			added = p.PartialResult
		}
		total.add(added)
		body.Reset()
		return err
	}
	for line, err := range lines {
		if err != nil {
			return total, errors.Join(err, send())
		}
		body.WriteString(lineToSend(line) + "\n")
		if body.Len() >= maxAddBodyBytes {
			if err := send(); err != nil {
				return total, err
			}
		}
	}
	return total, send()
}

// lineToSend returns a line without what AddURLs does not read of an object: a line of a list
// of URLs may be longer than the daemon takes.
func lineToSend(line string) string {
	var named struct {
		URL      string `json:"url"`
		Depth    int    `json:"depth,omitempty"`
		Referrer string `json:"referrer,omitempty"`
	}
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &named) != nil {
		return line
	}
	text, _ := json.Marshal(named) // of texts and a number: it cannot fail
	return string(text)
}

// add adds what became of more URLs.
func (r *AddURLsResult) add(more *AddURLsResult) {
	r.Added += more.Added
	r.Duplicates += more.Duplicates
	r.Refused += more.Refused
	r.InvalidLines += more.InvalidLines
	for _, refusal := range more.Refusals {
		i := slices.IndexFunc(r.Refusals, func(known RefusalSummary) bool {
			return known.RefusedBy == refusal.RefusedBy && known.Rule == refusal.Rule && known.RuleFileURL == refusal.RuleFileURL
		})
		if i < 0 {
			r.Refusals = append(r.Refusals, refusal)
		} else {
			r.Refusals[i].URLCount += refusal.URLCount
		}
	}
	slices.SortStableFunc(r.Refusals, func(a, b RefusalSummary) int { return cmp.Compare(b.URLCount, a.URLCount) })
}

// openLines makes a call whose answer is JSON Lines. decode reads the next line, and returns
// io.EOF after the last, and another error where the answer breaks off. The caller closes body.
func (c *Client) openLines(ctx context.Context, path string) (decode func(v any) error, body io.Closer, err error) {
	res, err := c.open(ctx, http.MethodGet, path, nil, http.Header{"Accept": {jsonLinesType}})
	if err != nil {
		return nil, nil, err
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || media != jsonLinesType {
		err := fmt.Errorf("%s is no daemon's answer: %s", res.Request.URL, res.Status)
		return nil, nil, cmp.Or(readResponse(res, nil), err)
	}
	limited := &io.LimitedReader{R: res.Body}
	d := json.NewDecoder(limited)
	return func(v any) error {
		limited.N = maxResponseBytes // for one line
		err := d.Decode(v)
		if err == nil || err == io.EOF && limited.N > 0 {
			return err
		}
		return fmt.Errorf("the answer breaks off: has the process that gave it ended? %w", err)
	}, res.Body, nil
}

// decodedLines yields what decode, which openLines has returned, reads. An error is yielded last.
func decodedLines[T any](decode func(v any) error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			v := new(T)
			switch err := decode(v); {
			case err == io.EOF:
				return
			case err != nil:
				yield(nil, err)
				return
			case !yield(v, nil):
				return
			}
		}
	}
}

// streamLines makes a call whose answer is JSON Lines, and yields them. An error is yielded
// last, also where the answer breaks off.
func streamLines[T any](ctx context.Context, c *Client, path string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		decode, body, err := c.openLines(ctx, path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer body.Close()
		decodedLines[T](decode)(yield)
	}
}
