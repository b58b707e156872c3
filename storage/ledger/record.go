package ledger

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A Record is one line of a ledger. Its place is given to it by Append; of the
// pointers exactly one is set, and says what it is a record of.
type Record struct {
	Hash   string    `json:"hash,omitempty"` // in hex: see the package
	Number int64     `json:"n,omitempty"`    // its number, from 1
	Time   time.Time `json:"time,omitzero"`  // when it was written

	RunStart     *RunStart     `json:"run,omitempty"`
	Request      *Request      `json:"request,omitempty"`
	Response     *Response     `json:"answer,omitempty"`
	Refusal      *Refusal      `json:"refusal,omitempty"`
	Checkpoint   *Checkpoint   `json:"checkpoint,omitempty"`
	SegmentStart *SegmentStart `json:"segment,omitempty"`
	Recovery     *Recovery     `json:"recovery,omitempty"`
	ClockChange  *ClockChange  `json:"clock,omitempty"`
	RunEnd       *RunEnd       `json:"end,omitempty"`
}

// A RunStart is the start of a process's work, and what it works by until its RunEnd, or
// until the next RunStart.
type RunStart struct {
	Software         string                  `json:"software"`          // name/version of what crawls
	Project          string                  `json:"project,omitempty"` // its name; empty: there is none
	UserAgent        string                  `json:"user_agent"`
	ProductToken     string                  `json:"agent"`                // the product token looked for in robots.txt
	FallbackTokens   []string                `json:"wider,omitempty"`      // tokens that stand in for it, in order
	IgnoresStarRules bool                    `json:"named_only,omitempty"` // rules for "*" do not bind ProductToken, a well-known crawler's
	RobotsDialect    string                  `json:"dialect"`              // of robots.txt: the name of a robots.Dialect
	RobotsExtensions bool                    `json:"extensions"`           // of robots.txt are read
	Purposes         []string                `json:"purposes,omitempty"`   // what the crawl is for: see gate.Config
	DelayMS          int64                   `json:"delay_ms"`             // the crawl's own rest between visits to a host
	HostOverrides    map[string]HostOverride `json:"hosts,omitempty"`      // by host
	RecordsRefusals  bool                    `json:"refusals,omitempty"`   // are recorded, too
	KeyID            string                  `json:"key,omitempty"`        // as of a Checkpoint; empty: there are none
	// SharedCrawl says that other processes may work on the same crawl, each with a ledger of
	// its own.
	SharedCrawl bool `json:"shared,omitempty"`
}

// A HostOverride is what a run does otherwise for one host.
type HostOverride struct {
	DelayMS   *int64    `json:"delay_ms,omitempty"` // nil: as for all
	Reason    string    `json:"reason,omitempty"`
	ExpiresAt time.Time `json:"expires,omitzero"` // it holds before
}

// What a request is for.
const (
	KindPage      = "page"
	KindSitemap   = "sitemap"
	KindRobotsTXT = "robots.txt"
	KindTDMRep    = "tdmrep.json"
)

// A Request is about to be sent: its robots.txt allows it, and its host is due.
type Request struct {
	URL           string         `json:"url"`
	Method        string         `json:"method,omitempty"`   // empty: GET
	Kind          string         `json:"kind"`               // page, sitemap, robots.txt or tdmrep.json
	Origin        string         `json:"origin"`             // whose robots.txt cleared it, or is asked for
	ServerIP      string         `json:"ip,omitempty"`       // of the server; empty if it is not known
	URLSource     string         `json:"source"`             // how it was found: the name of a storage.Source
	Referrer      string         `json:"referrer,omitempty"` // where it was found; of a redirect, who redirected
	RobotsVerdict *RobotsVerdict `json:"robots,omitempty"`   // nil for KindRobotsTXT
	// RequiredDelayMS is the rest that the host was owed, and ObservedDelayMS the one that it
	// had, from the end of the last visit; both rounded down. They are absent, and 0,
	// at the first visit.
	RequiredDelayMS int64  `json:"delay_required_ms,omitempty"`
	ObservedDelayMS int64  `json:"delay_observed_ms,omitempty"`
	Slots           int    `json:"slots"`              // visits that the host may have at a time
	OverrideReason  string `json:"override,omitempty"` // why the host's pace is not that of all
}

// A Response is what came of a request.
type Response struct {
	RequestNumber int64     `json:"request"`         // its number
	EndedAt       time.Time `json:"end"`             // of the transfer: the host's rest begins; by the clock as it is when the record is written
	Status        int       `json:"status"`          // 0: no whole answer came
	BodyBytes     int       `json:"bytes"`           // of the body, as decoded
	Error         string    `json:"error,omitempty"` // why no whole answer came; empty: one did
	// WithheldReason is what of the site objects to a purpose of the run, so that the content
	// was not used for it; empty: nothing does.
	WithheldReason string `json:"withheld,omitempty"`
}

// A Refusal is a URL that was not asked for.
type Refusal struct {
	URL           string         `json:"url"`
	Origin        string         `json:"origin"`             // of URL
	URLSource     string         `json:"source"`             // as of a Request
	Referrer      string         `json:"referrer,omitempty"` // as of a Request
	Reason        string         `json:"why"`                // for people: the reason that the crawl gives
	RobotsVerdict *RobotsVerdict `json:"robots,omitempty"`   // nil: it was not robots.txt that refused it
}

// A RobotsVerdict is what robots.txt says to a URL, and by which line.
type RobotsVerdict struct {
	Allowed      bool      `json:"allowed"`
	FetchOutcome string    `json:"outcome"`               // as gate.Outcome: rules, allow_all, cached_rules
	FileSHA256   string    `json:"file_sha256,omitempty"` // of the file's bytes; empty if there is none
	FetchedAt    time.Time `json:"fetched"`               // when the answer came
	Group        string    `json:"group"`                 // user-agent values of the group, with commas
	Rule         string    `json:"rule,omitempty"`        // empty: no line speaks of the URL
	RuleLine     int       `json:"line,omitempty"`        // of the rule, counted from 1
	// DisallowedForMainRobot is as of a robots.Verdict: the main robot of the agent's operator
	// may not fetch the URL.
	DisallowedForMainRobot bool `json:"not_for_indexing,omitempty"`
}

// NewRobotsVerdict returns what the record says of a verdict by a file. Rules and groups
// of more than 1 KiB are cut.
func NewRobotsVerdict(v robots.Verdict, file gate.FetchSummary) *RobotsVerdict {
	return &RobotsVerdict{
		Allowed: v.Allowed, FetchOutcome: file.Outcome.String(), FileSHA256: file.SHA256, FetchedAt: truncateTime(file.FetchedAt),
		Group: TruncateText(v.Group), Rule: TruncateText(v.Rule), RuleLine: v.Line,
		DisallowedForMainRobot: v.DisallowedForMainRobot,
	}
}

// A Checkpoint signs all records before it.
type Checkpoint struct {
	KeyID     string `json:"key"`       // SHA-256, in hex, of the public key in DER
	Signature []byte `json:"signature"` // Ed25519, of the four lines that docs/ledger.md gives
}

// A SegmentStart begins each file but the first.
type SegmentStart struct {
	PreviousFile   string `json:"previous"` // the name of the file before
	PreviousSHA256 string `json:"sha256"`   // of that file's bytes
	ChainHash      string `json:"chain"`    // the hash of its last record
}

// A Recovery closes what a process left that did not come to its RunEnd: it was
// killed, or the machine went down.
type Recovery struct {
	CutBytes int64 `json:"cut_bytes"` // of a torn record, which was cut off
}

// A RunEnd is that of a RunStart: every request of it has its Response.
type RunEnd struct {
	Requests int64 `json:"requests"` // of the run
}

// countSetKinds returns how many kinds of record r claims to be; it should be one.
func (r *Record) countSetKinds() (n int) {
	for _, set := range []bool{r.RunStart != nil, r.Request != nil, r.Response != nil, r.Refusal != nil,
		r.Checkpoint != nil, r.SegmentStart != nil, r.Recovery != nil, r.ClockChange != nil, r.RunEnd != nil} {
		if set {
			n++
		}
	}
	return n
}

// maxTextBytes is how much is kept of a text that a server can make as long as it
// likes, in bytes.
const maxTextBytes = 1 << 10

// TruncateText returns the beginning of s that is kept, as valid UTF-8.
func TruncateText(s string) string {
	if len(s) <= maxTextBytes && utf8.ValidString(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	for end := maxTextBytes; end < len(s); end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s
}

// truncateTime returns a moment as records have it: in UTC, to the microsecond.
func truncateTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// maxLineBytes is how long a line may be, in bytes: that of a run with many overrides is long.
const maxLineBytes = 64 << 20
