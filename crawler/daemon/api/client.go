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

// maxResponseBytes is how many bytes of an answer, or of one line of a streamed answer, a Client
// reads.
const maxResponseBytes = 256 << 20

// A Client calls a daemon's API. Its methods are a part of Daemon's, and are safe for concurrent
// use. A call that the daemon refuses returns a *Problem.
type Client struct {
	Server string       // as http://127.0.0.1:8470
	Token  string       // of a role that may make the calls; empty: HTTP connects to the daemon's socket
	HTTP   *http.Client // nil: http.DefaultClient
	Reason string       // recorded in the audit with calls that change something; empty: none
}

// Projects returns all projects.
func (c *Client) Projects(ctx context.Context) (all []Project, err error) {
	return all, c.getJSON(ctx, projectsPath, &all)
}

// Project returns one project.
func (c *Client) Project(ctx context.Context, name string) (p *Project, err error) {
	return p, c.getJSON(ctx, projectsPath+"/"+url.PathEscape(name), &p)
}

// ReloadProjects reads all project files again, and returns one result for each.
func (c *Client) ReloadProjects(ctx context.Context) (all []ProjectReloadResult, err error) {
	return all, c.sendRequest(ctx, http.MethodPost, reloadPath, nil, nil, &all)
}

// PutProject creates a project from the text of its file, or changes it.
func (c *Client) PutProject(ctx context.Context, name string, file []byte) error {
	return c.sendRequest(ctx, http.MethodPut, projectsPath+"/"+url.PathEscape(name), file,
		http.Header{"Content-Type": {yamlTypes[0]}}, nil)
}

// ControlProject changes the state of a project.
func (c *Client) ControlProject(ctx context.Context, name string, a ProjectAction) error {
	return c.sendRequest(ctx, http.MethodPost, projectAPIPath(name, string(a)), nil, nil, nil)
}

// Hosts returns a page of the hosts of a project.
func (c *Client) Hosts(ctx context.Context, name string, q HostQuery) (page *HostListPage, err error) {
	order := "asc"
	if q.Descending {
		order = "desc"
	}
	path := projectAPIPath(name, "hosts", "q", q.Search, "state", q.State, "sort", q.Sort, "order", order,
		"offset", strconv.Itoa(q.Offset), "limit", strconv.Itoa(cmp.Or(q.Limit, defaultHostLimit)))
	return page, c.getJSON(ctx, path, &page)
}

// ProjectActiveVisits returns the visits in flight of a project.
func (c *Client) ProjectActiveVisits(ctx context.Context, name string) (all []ActiveVisit, err error) {
	return all, c.getJSON(ctx, projectAPIPath(name, "visits"), &all)
}

// ProjectThroughput returns the recent throughput of a project, as Daemon.ProjectThroughput.
func (c *Client) ProjectThroughput(ctx context.Context, name string, coarse bool) (all []ThroughputSample, err error) {
	return all, c.getJSON(ctx, projectAPIPath(name, "throughput", "coarse", strconv.FormatBool(coarse)), &all)
}

// Brakes returns the brakes in force.
func (c *Client) Brakes(ctx context.Context) (all []Brake, err error) {
	return all, c.getJSON(ctx, brakesPath, &all)
}

// SetBrake stops or slows a host in all projects, and returns the new brake.
func (c *Client) SetBrake(ctx context.Context, host string, o BrakeRequest) (b *Brake, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return b, c.sendRequest(ctx, http.MethodPut, brakesPath+"/"+url.PathEscape(host), body, header, &b)
}

// LiftBrake removes the brake of a host; reason is for the audit.
func (c *Client) LiftBrake(ctx context.Context, host, reason string) error {
	return c.sendRequest(ctx, http.MethodDelete, brakesPath+"/"+url.PathEscape(host), nil,
		http.Header{reasonHeader: {reason}}, nil)
}

// RotateToken replaces a token of the daemon: token or token-read.
func (c *Client) RotateToken(ctx context.Context, name string) (t *TokenRotation, err error) {
	return t, c.sendRequest(ctx, http.MethodPost, tokensPath+"/"+url.PathEscape(name)+"/rotate", nil, nil, &t)
}

// projectAPIPath returns the path of a call about a project, with those of the query parameters
// whose value is not empty.
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

// getJSON makes a GET call and decodes the answer into the value that into points to.
func (c *Client) getJSON(ctx context.Context, path string, into any) error {
	return c.sendRequest(ctx, http.MethodGet, path, nil, nil, into)
}

// open makes a call and returns the answer. The caller closes its body.
func (c *Client) open(ctx context.Context, method, path string, body []byte,
	header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Server, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.Reason != "" {
		r.Header.Set(reasonHeader, c.Reason)
	}
	maps.Copy(r.Header, header)
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	return cmp.Or(c.HTTP, http.DefaultClient).Do(r)
}

// sendRequest makes a call and decodes the answer into the value that into points to. If into is
// nil, it discards the answer.
func (c *Client) sendRequest(ctx context.Context, method, path string, body []byte,
	header http.Header, into any) error {
	res, err := c.open(ctx, method, path, body, header)
	if err != nil {
		return err
	}
	return readResponse(res, into)
}

// readResponse decodes an answer into the value that into points to, unless into is nil, and closes
// its body. It returns the *Problem of a failed call.
func readResponse(res *http.Response, into any) error {
	respBody, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		p := &Problem{}
		media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if media != "application/problem+json" || json.Unmarshal(respBody, p) != nil {
			return newProblem(res.StatusCode, "the answer of %s is not a decorum daemon's: %s",
				res.Request.URL, res.Status)
		}
		return p
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(respBody, into); err != nil {
		return fmt.Errorf("the answer of %s is not a decorum daemon's: %w", res.Request.URL, err)
	}
	return nil
}

// Crawl returns an Inspector that queries the daemon about a project. If Server is a crawl in the
// foreground, name must be CrawlName.
func (c *Client) Crawl(name string) Inspector { return crawlClient{c, name} }

// A crawlClient is the Inspector of a crawl that another process runs.
type crawlClient struct {
	client *Client
	name   string
}

// Report implements Inspector. The hosts arrive while use reads them.
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
		return fmt.Errorf("the answer of %s%s is not a decorum daemon's: it is empty", c.client.Server, path)
	case err != nil:
		return err
	}
	return use(s)
}

// ExplainURL implements Inspector.
func (c crawlClient) ExplainURL(ctx context.Context, u string) (e *URLExplanation, err error) {
	return e, c.client.getJSON(ctx, projectAPIPath(c.name, "explain", "url", u), &e)
}

// FrontierStats implements Inspector.
func (c crawlClient) FrontierStats(ctx context.Context) (s *FrontierStats, err error) {
	return s, c.client.getJSON(ctx, projectAPIPath(c.name, "frontier"), &s)
}

// FrontierURLs implements Inspector.
func (c crawlClient) FrontierURLs(ctx context.Context, q FrontierURLQuery) iter.Seq2[*FrontierURL, error] {
	return streamLines[FrontierURL](ctx, c.client, projectAPIPath(c.name, "frontier/urls",
		"host", q.Host, "origin", q.Origin, "state", q.State, "limit", strconv.Itoa(q.Limit)))
}

// LedgerRecords implements Inspector.
func (c crawlClient) LedgerRecords(ctx context.Context, q LedgerQuery) iter.Seq2[*ledger.Record, error] {
	return streamLines[ledger.Record](ctx, c.client, projectAPIPath(c.name, "ledger", "url", q.URL, "host", q.Host))
}

// maxAddBodyBytes is about how many bytes of lines AddURLs sends in one call.
const maxAddBodyBytes = 1 << 20

// lastAddTimeout is how long the last call of AddURLs may take after its context has ended.
const lastAddTimeout = 5 * time.Second

// AddURLs implements Inspector. It makes a call for each MiB of lines, so that no call stays open
// while a person types lines.
func (c crawlClient) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*AddURLsResult, error) {
	// After a signal the call in progress gets lastAddTimeout, so that its result is counted.
	sendCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastAddTimeout, cancel) })()
	total := &AddURLsResult{}
	var body bytes.Buffer
	// send makes a call with the lines of body, adds its result to total, and empties body. A
	// Problem may carry the result of the lines before the error.
	send := func() error {
		added := &AddURLsResult{}
		header := http.Header{"Content-Type": {jsonLinesType}}
		err := c.client.sendRequest(sendCtx, http.MethodPost, projectAPIPath(c.name, "urls"),
			body.Bytes(), header, added)
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

// lineToSend returns a line to send to the daemon. Of an object it keeps only the members that
// AddURLs reads, because the line of an export may be longer than the daemon accepts.
func lineToSend(line string) string {
	var named struct {
		URL      string `json:"url"`
		Depth    int    `json:"depth,omitempty"`
		Referrer string `json:"referrer,omitempty"`
	}
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &named) != nil {
		return line
	}
	text, _ := json.Marshal(named) // it cannot fail for two strings and a number
	return string(text)
}

// add adds the counts of more to r, and keeps r.Refusals sorted, the most URLs first.
func (r *AddURLsResult) add(more *AddURLsResult) {
	r.Added += more.Added
	r.Duplicates += more.Duplicates
	r.Refused += more.Refused
	r.InvalidLines += more.InvalidLines
	for _, refusal := range more.Refusals {
		i := slices.IndexFunc(r.Refusals, func(known RefusalSummary) bool {
			return known.RefusedBy == refusal.RefusedBy && known.Rule == refusal.Rule &&
				known.RuleFileURL == refusal.RuleFileURL
		})
		if i < 0 {
			r.Refusals = append(r.Refusals, refusal)
		} else {
			r.Refusals[i].URLCount += refusal.URLCount
		}
	}
	slices.SortStableFunc(r.Refusals, func(a, b RefusalSummary) int { return cmp.Compare(b.URLCount, a.URLCount) })
}

// openLines makes a call whose answer is JSON Lines. decode reads the next line into v. It returns
// io.EOF after the last line, and another error if the answer breaks off. The caller closes body.
func (c *Client) openLines(ctx context.Context, path string) (decode func(v any) error, body io.Closer, err error) {
	res, err := c.open(ctx, http.MethodGet, path, nil, http.Header{"Accept": {jsonLinesType}})
	if err != nil {
		return nil, nil, err
	}
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK ||
		media != jsonLinesType {
		err := fmt.Errorf("the answer of %s is not a decorum daemon's: %s", res.Request.URL, res.Status)
		return nil, nil, cmp.Or(readResponse(res, nil), err)
	}
	limited := &io.LimitedReader{R: res.Body}
	d := json.NewDecoder(limited)
	return func(v any) error {
		limited.N = maxResponseBytes // the limit of each line
		err := d.Decode(v)
		if err == nil || err == io.EOF && limited.N > 0 {
			return err
		}
		return fmt.Errorf("the answer breaks off; the crawl's process may have ended: %w", err)
	}, res.Body, nil
}

// decodedLines yields the values that decode reads, a function that openLines returned. An error is
// yielded last.
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

// streamLines makes a call whose answer is JSON Lines, and yields the value of each line. An error
// is yielded last, also if the answer breaks off.
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
