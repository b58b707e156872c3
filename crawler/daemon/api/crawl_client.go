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
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/storage/ledger"
)

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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	path := c.path("report", "host", q.Host, "limit", strconv.Itoa(q.Limit))
	next, end := iter.Pull2(streamLines[json.RawMessage](ctx, c.client, path))
	defer end()
	line, err, _ := next()
	if err != nil {
		return err
	}
	s := &StreamedReport{Hosts: func(yield func(*Host, error) bool) {
		for line, err, more := next(); more; line, err, more = next() {
			h := new(Host)
			if err == nil {
				err = json.Unmarshal(*line, h)
			}
			if !yield(h, err) || err != nil {
				return
			}
		}
	}}
	if line == nil {
		return fmt.Errorf("%s%s is no daemon's answer: it is empty", c.client.Server, path)
	}
	if err := json.Unmarshal(*line, &s.Totals); err != nil {
		return err
	}
	return use(s)
}

// ExplainURL is part of Inspector.
func (c crawlClient) ExplainURL(ctx context.Context, u string) (e *URLExplanation, err error) {
	return e, c.client.callJSON(ctx, http.MethodGet, c.path("explain", "url", u), nil, nil, &e)
}

// FrontierStats is part of Inspector.
func (c crawlClient) FrontierStats(ctx context.Context) (s *FrontierStats, err error) {
	return s, c.client.callJSON(ctx, http.MethodGet, c.path("frontier"), nil, nil, &s)
}

// FrontierURLs is part of Inspector.
func (c crawlClient) FrontierURLs(ctx context.Context, q FrontierURLQuery) iter.Seq2[*FrontierURL, error] {
	return streamLines[FrontierURL](ctx, c.client,
		c.path("frontier/urls", "host", q.Host, "origin", q.Origin, "state", q.State, "limit", strconv.Itoa(q.Limit)))
}

// LedgerRecords is part of Inspector.
func (c crawlClient) LedgerRecords(ctx context.Context, q LedgerQuery) iter.Seq2[*ledger.Record, error] {
	return streamLines[ledger.Record](ctx, c.client, c.path("ledger", "url", q.URL, "host", q.Host))
}

// maxAddBodyBytes is how much of the lines one call of AddURLs sends, about, in bytes.
const maxAddBodyBytes = 1 << 20

// lastAddTimeout is how long the last call of AddURLs may take when a signal has ended lines.
const lastAddTimeout = 5 * time.Second

// AddURLs is part of Inspector. It makes a call for each MiB of lines, so that no call waits
// for somebody who types them.
func (c crawlClient) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*AddURLsResult, error) {
	total := &AddURLsResult{}
	var body bytes.Buffer
	send := func() error {
		added := &AddURLsResult{}
		res, err := c.client.open(ctx, http.MethodPost, c.path("urls"), body.Bytes(), http.Header{"Content-Type": {jsonLinesType}})
		if err == nil {
			err = readResponse(res, added)
		}
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
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastAddTimeout)
			defer cancel()
			return total, errors.Join(err, send())
		}
		body.WriteString(line + "\n")
		if body.Len() >= maxAddBodyBytes {
			if err := send(); err != nil {
				return total, err
			}
		}
	}
	return total, send()
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

// path returns the path of a call about the crawl, with the parameters that are not empty.
func (c crawlClient) path(rest string, namesAndValues ...string) string {
	q := url.Values{}
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	path := projectAPIPath(c.name, rest)
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

// streamLines makes a call whose answer is JSON Lines, and yields them. An error is yielded
// last, also where the answer breaks off.
func streamLines[T any](ctx context.Context, c *Client, path string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		res, err := c.open(ctx, http.MethodGet, path, nil, http.Header{"Accept": {jsonLinesType}})
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			yield(nil, cmp.Or(readResponse(res, nil), fmt.Errorf("%s is no daemon's answer: %s", res.Request.URL, res.Status)))
			return
		}
		limited := &io.LimitedReader{R: res.Body}
		for d := json.NewDecoder(limited); ; {
			limited.N = maxResponseBytes // for one line
			v := new(T)
			err := d.Decode(v)
			switch {
			case errors.Is(err, io.EOF) && limited.N > 0:
				return
			case err != nil:
				yield(nil, fmt.Errorf("the answer of %s breaks off: %w", res.Request.URL, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
