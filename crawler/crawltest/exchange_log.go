package crawltest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// An Exchange is one request and its answer, as the server saw them.
type Exchange struct {
	Method            string    `json:"method"`
	URL               string    `json:"url"`                   // as requested: scheme, host, path and query
	UserAgent         string    `json:"agent"`                 // the User-Agent header
	Conditional       bool      `json:"conditional,omitempty"` // If-None-Match or If-Modified-Since
	RequestBodySHA256 string    `json:"body_sha256,omitempty"` // of the request, in hex; empty: it had no body
	Start             time.Time `json:"start"`                 // when the request had arrived
	// End is when the answer ended. It is taken just before the last byte leaves the server, so that
	// no client can see the end earlier. For an incomplete answer it is when the answer broke off or
	// the client went away. Zero: the answer has not ended.
	End       time.Time `json:"end,omitzero"`
	Status    int       `json:"status,omitempty"` // 0: no status was sent
	BodyBytes int64     `json:"bytes,omitempty"`  // of the body, as sent
	// Incomplete means that the client cannot have a correct answer: it broke off, or is damaged.
	Incomplete bool          `json:"broken,omitempty"`
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"` // of the answer; 0: none
	Location   string        `json:"location,omitempty"`       // of a redirect, as it was sent
	OverSocket bool          `json:"wire,omitempty"`           // the request came over a real socket
}

// An exchangeLog is the log of a Web.
type exchangeLog struct {
	mu            sync.Mutex          // guards entries, requestsByURL and unlogged, and the exchange of every recorder
	entries       []*exchangeRecorder // in the order in which they were added
	requestsByURL map[string]int      // how many entries each URL has
	unlogged      int                 // exchanges beyond the limit
}

// An exchangeRecorder records one exchange while it proceeds.
type exchangeRecorder struct {
	log       *exchangeLog
	nthForURL int      // PageRequest.NthForURL
	exchange  Exchange // guarded by log.mu
}

// addEntryUpToLimit adds a new exchange if the log has fewer than limit entries. Beyond the limit it
// returns a recorder that is not in the log, and does not count the request for its URL.
func (b *exchangeLog) addEntryUpToLimit(x Exchange, limit int) *exchangeRecorder {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &exchangeRecorder{log: b, exchange: x}
	if len(b.entries) >= limit {
		b.unlogged++
		e.nthForURL = b.requestsByURL[x.URL] + 1
		return e
	}
	if b.requestsByURL == nil {
		b.requestsByURL = map[string]int{}
	}
	b.requestsByURL[x.URL]++
	e.nthForURL = b.requestsByURL[x.URL]
	b.entries = append(b.entries, e)
	return e
}

// recordResponseHead records the status and the headers of the answer.
func (e *exchangeRecorder) recordResponseHead(d wireResponse) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.exchange.Status, e.exchange.Location = d.status, d.header.Get("Location")
	e.exchange.RetryAfter = d.retryAfterDelay(time.Now())
}

// addBodyBytes adds n to the bytes of the body.
func (e *exchangeRecorder) addBodyBytes(n int) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.exchange.BodyBytes += int64(n)
}

// recordEnd records the end of the exchange. Only the first call has an effect.
func (e *exchangeRecorder) recordEnd(incomplete bool) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if e.exchange.End.IsZero() {
		e.exchange.End, e.exchange.Incomplete = time.Now(), incomplete
	}
}

// Log returns the exchanges so far, in the order of their Start.
func (w *Web) Log() []Exchange {
	w.exchangeLog.mu.Lock()
	defer w.exchangeLog.mu.Unlock()
	log := make([]Exchange, len(w.exchangeLog.entries))
	for i, e := range w.exchangeLog.entries {
		log[i] = e.exchange
	}
	sortLog(log)
	return log
}

func sortLog(log []Exchange) {
	slices.SortStableFunc(log, func(a, b Exchange) int { return a.Start.Compare(b.Start) })
}

// WriteLog writes a log as JSON Lines. Times keep their nanoseconds and lose their monotonic clock
// reading.
func WriteLog(w io.Writer, log []Exchange) error {
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for _, x := range log {
		if err := enc.Encode(x); err != nil {
			return err
		}
	}
	return buf.Flush()
}

// ReadLog reads one log that WriteLog wrote, or several concatenated ones, and sorts the exchanges by
// Start.
func ReadLog(r io.Reader) ([]Exchange, error) {
	var log []Exchange
	dec := json.NewDecoder(r)
	for {
		var x Exchange
		err := dec.Decode(&x)
		if errors.Is(err, io.EOF) {
			sortLog(log)
			return log, nil
		}
		if err != nil {
			return nil, fmt.Errorf("crawltest: log entry %d: %w", len(log)+1, err)
		}
		log = append(log, x)
	}
}
