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
	URL               string    `json:"url"`                   // as asked for: scheme, host, path and query
	UserAgent         string    `json:"agent"`                 // the User-Agent header
	Conditional       bool      `json:"conditional,omitempty"` // If-None-Match or If-Modified-Since
	RequestBodySHA256 string    `json:"body_sha256,omitempty"` // of the request, in hex; empty: it had no body
	Start             time.Time `json:"start"`                 // when the request had come
	// End is when the answer ended: just before its last byte left the server,
	// so that no client can have seen its end any earlier; for one that was not
	// sent to its end, when it broke off or the client went away. Zero: it goes on.
	End        time.Time     `json:"end,omitzero"`
	Status     int           `json:"status,omitempty"`         // 0: none was sent
	BodyBytes  int64         `json:"bytes,omitempty"`          // of the body, as sent
	Incomplete bool          `json:"broken,omitempty"`         // the client cannot have got all of it: it broke off, or is damaged
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"` // that the answer asks for; 0: none
	Location   string        `json:"location,omitempty"`       // where a redirect leads, as it was sent
	OverSocket bool          `json:"wire,omitempty"`           // it came over a real socket
}

// An exchangeLog is the log being written.
type exchangeLog struct {
	mu            sync.Mutex
	entries       []*exchangeRecorder
	requestsByURL map[string]int
	unlogged      int
}

// An exchangeRecorder is an exchange being logged.
type exchangeRecorder struct {
	log       *exchangeLog
	nthForURL int
	exchange  Exchange
}

// addEntryUpToLimit enters an exchange that has begun, if there are less than limit. Of
// the others no count is kept either.
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

// recordResponseHead enters what the head of the answer says.
func (e *exchangeRecorder) recordResponseHead(d wireResponse) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.exchange.Status, e.exchange.Location = d.status, d.header.Get("Location")
	e.exchange.RetryAfter = d.retryAfterDelay(time.Now())
}

// addBodyBytes counts bytes of the body.
func (e *exchangeRecorder) addBodyBytes(n int) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.exchange.BodyBytes += int64(n)
}

// recordEnd enters the end of the exchange. Only the first end counts.
func (e *exchangeRecorder) recordEnd(incomplete bool) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if e.exchange.End.IsZero() {
		e.exchange.End, e.exchange.Incomplete = time.Now(), incomplete
	}
}

// Log returns what the web has seen so far, in the order in which it began.
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

// WriteLog writes a log as JSON Lines. Times keep their nanoseconds, and lose
// the monotonic clock.
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

// ReadLog reads what WriteLog has written: one log, or several one after the
// other.
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
