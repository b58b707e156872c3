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
	Method      string    `json:"method"`
	URL         string    `json:"url"`                   // as asked for: scheme, host, path and query
	Agent       string    `json:"agent"`                 // the User-Agent header
	Conditional bool      `json:"conditional,omitempty"` // If-None-Match or If-Modified-Since
	BodySHA256  string    `json:"body_sha256,omitempty"` // of the request, in hex; empty: it had no body
	Start       time.Time `json:"start"`                 // when the request had come
	// End is when the answer ended: just before its last byte left the server,
	// so that no client can have seen its end any earlier; for one that was not
	// sent to its end, when it broke off or the client went away. Zero: it goes on.
	End        time.Time     `json:"end,omitzero"`
	Status     int           `json:"status,omitempty"`         // 0: none was sent
	Bytes      int64         `json:"bytes,omitempty"`          // of the body, as sent
	Broken     bool          `json:"broken,omitempty"`         // the client cannot have got all of it: it broke off, or is damaged
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"` // that the answer asks for; 0: none
	Location   string        `json:"location,omitempty"`       // where a redirect leads, as it was sent
	Wire       bool          `json:"wire,omitempty"`           // it came over a real socket
}

// A book is the log being written.
type book struct {
	mu      sync.Mutex
	entries []*entry
	nth     map[string]int
	dropped int
}

// An entry is an exchange being logged.
type entry struct {
	book *book
	nth  int
	x    Exchange
}

// begin enters an exchange that has begun, if there are less than limit. Of
// the others no count is kept either.
func (b *book) begin(x Exchange, limit int) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &entry{book: b, x: x}
	if len(b.entries) >= limit {
		b.dropped++
		e.nth = b.nth[x.URL] + 1
		return e
	}
	if b.nth == nil {
		b.nth = map[string]int{}
	}
	b.nth[x.URL]++
	e.nth = b.nth[x.URL]
	b.entries = append(b.entries, e)
	return e
}

// head enters what the head of the answer says.
func (e *entry) head(d delivery) {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	e.x.Status, e.x.Location = d.status, d.header.Get("Location")
	e.x.RetryAfter = d.retryAfter(time.Now())
}

// sent counts bytes of the body.
func (e *entry) sent(n int) {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	e.x.Bytes += int64(n)
}

// end enters the end of the exchange. Only the first end counts.
func (e *entry) end(broken bool) {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	if e.x.End.IsZero() {
		e.x.End, e.x.Broken = time.Now(), broken
	}
}

// Log returns what the web has seen so far, in the order in which it began.
func (w *Web) Log() []Exchange {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	log := make([]Exchange, len(w.log.entries))
	for i, e := range w.log.entries {
		log[i] = e.x
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
