package ledger

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A Record is one line of a ledger. Append sets Hash, Number and Time in the file. Exactly one of the
// pointers is set, and says what the record is of.
type Record struct {
	Hash   string    `json:"hash,omitempty"` // in hex: see the package documentation
	Number int64     `json:"n,omitempty"`    // from 1, through all segments
	Time   time.Time `json:"time,omitzero"`  // when it was written, in UTC, to the microsecond

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

// A RunStart is the start of a run, which is the work of one process, with the settings that decide.
// They hold until the RunEnd, or until the next RunStart.
type RunStart struct {
	Software  string `json:"software"`          // name/version of the crawler
	Project   string `json:"project,omitempty"` // name of the project, if it has one
	UserAgent string `json:"user_agent"`        // the User-Agent header
	// ProductToken is the token that robots.txt files name.
	ProductToken string `json:"agent"`
	// FallbackTokens are the tokens that stand in for ProductToken, in order.
	FallbackTokens []string `json:"wider,omitempty"`
	// IgnoresStarRules is set if rules for "*" do not bind ProductToken, which is that of a
	// well-known crawler.
	IgnoresStarRules bool   `json:"named_only,omitempty"`
	RobotsDialect    string `json:"dialect"`    // name of a robots.Dialect
	RobotsExtensions bool   `json:"extensions"` // whether extensions of robots.txt are read
	// Purposes are the purposes of the crawl: see gate.Config.
	Purposes []string `json:"purposes,omitempty"`
	// DelayMS is the run's own delay between visits to a host, in milliseconds.
	DelayMS         int64                   `json:"delay_ms"`
	HostOverrides   map[string]HostOverride `json:"hosts,omitempty"`    // by host
	RecordsRefusals bool                    `json:"refusals,omitempty"` // whether Refusals are recorded
	KeyID           string                  `json:"key,omitempty"`      // Checkpoint.KeyID; empty: no checkpoints
	// SharedCrawl is set if other processes may work on the same crawl, each with a separate
	// ledger.
	SharedCrawl bool `json:"shared,omitempty"`
}

// A HostOverride is the politeness setting of a run for one host.
type HostOverride struct {
	DelayMS   *int64    `json:"delay_ms,omitempty"` // in place of RunStart.DelayMS; nil: no change
	Reason    string    `json:"reason,omitempty"`   // why, in the operator's words
	ExpiresAt time.Time `json:"expires,omitzero"`   // the override holds before this time; zero: always
}

// Values of Request.Kind: what a request is for.
const (
	KindPage      = "page"
	KindSitemap   = "sitemap"
	KindRobotsTXT = "robots.txt"
	KindTDMRep    = "tdmrep.json"
)

// A Request is a request that is about to be sent: robots.txt allows it, and its host is due.
type Request struct {
	URL    string `json:"url"`
	Method string `json:"method,omitempty"` // empty means GET
	Kind   string `json:"kind"`             // page, sitemap, robots.txt or tdmrep.json: see KindPage
	// Origin is the origin whose robots.txt allows the request, or, with KindRobotsTXT, the
	// origin for which the file is fetched.
	Origin    string `json:"origin"`
	ServerIP  string `json:"ip,omitempty"` // address of the server; empty if unknown
	URLSource string `json:"source"`       // how the URL was found: the name of a storage.Source
	// Referrer is the URL on which URL was found; after a redirect, the URL that redirected.
	Referrer      string         `json:"referrer,omitempty"`
	RobotsVerdict *RobotsVerdict `json:"robots,omitempty"` // nil with KindRobotsTXT
	// RequiredDelayMS is the required delay between the end of the last visit to the host and this
	// request, ObservedDelayMS the observed one, in milliseconds, rounded down. Both are 0, and
	// absent, at the first visit.
	RequiredDelayMS int64  `json:"delay_required_ms,omitempty"`
	ObservedDelayMS int64  `json:"delay_observed_ms,omitempty"`
	Slots           int    `json:"slots"`              // how many visits the host may have at a time
	OverrideReason  string `json:"override,omitempty"` // reason of the host's override, if it has one
}

// A Response is the outcome of a request.
type Response struct {
	RequestNumber int64 `json:"request"` // Record.Number of the request
	// EndedAt is the end of the transfer, from which the host's delay counts, by the clock as it is
	// when the record is written.
	EndedAt   time.Time `json:"end"`
	Status    int       `json:"status"`          // HTTP status; 0 if the answer did not come completely
	BodyBytes int       `json:"bytes"`           // bytes of the body, as decoded
	Error     string    `json:"error,omitempty"` // why the answer did not come completely
	// WithheldReason is the statement of the site that objects to a purpose of the run, for which
	// the content was therefore not used. It is empty if the site has no objection.
	WithheldReason string `json:"withheld,omitempty"`
}

// A Refusal is a URL that the crawl has not requested, because robots.txt or the scope refuses it.
type Refusal struct {
	URL           string         `json:"url"`
	Origin        string         `json:"origin"`             // origin of URL
	URLSource     string         `json:"source"`             // as Request.URLSource
	Referrer      string         `json:"referrer,omitempty"` // as Request.Referrer
	Reason        string         `json:"why"`                // the crawl's reason, for people
	RobotsVerdict *RobotsVerdict `json:"robots,omitempty"`   // nil if robots.txt did not refuse it
}

// A RobotsVerdict is the verdict of a robots.txt on a URL, and the line that decides.
type RobotsVerdict struct {
	Allowed      bool      `json:"allowed"`
	FetchOutcome string    `json:"outcome"`               // a gate.Outcome: rules, allow_all, cached_rules
	FileSHA256   string    `json:"file_sha256,omitempty"` // SHA-256 of the file, in hex; empty without a file
	FetchedAt    time.Time `json:"fetched"`               // when the file was fetched
	Group        string    `json:"group"`                 // user-agent values of the group, separated by commas
	Rule         string    `json:"rule,omitempty"`        // the rule that decides; empty if no rule matches
	RuleLine     int       `json:"line,omitempty"`        // line of the rule, from 1
	// DisallowedForMainRobot is set if the main robot of the agent's operator may not fetch the URL:
	// see robots.Verdict.
	DisallowedForMainRobot bool `json:"not_for_indexing,omitempty"`
}

// NewRobotsVerdict returns the record of a verdict that rests on a file. It cuts rules and groups of more
// than 1 KiB.
func NewRobotsVerdict(v robots.Verdict, file gate.FetchSummary) *RobotsVerdict {
	return &RobotsVerdict{
		Allowed: v.Allowed, FetchOutcome: file.Outcome.String(), FileSHA256: file.SHA256,
		FetchedAt: truncateTime(file.FetchedAt),
		Group:     TruncateText(v.Group), Rule: TruncateText(v.Rule), RuleLine: v.Line,
		DisallowedForMainRobot: v.DisallowedForMainRobot,
	}
}

// A Checkpoint signs all records before it.
type Checkpoint struct {
	KeyID     string `json:"key"`       // SHA-256, in hex, of the public key in DER
	Signature []byte `json:"signature"` // Ed25519 signature of the four lines in docs/ledger.md
}

// A SegmentStart is the first record of each file but the first.
type SegmentStart struct {
	PreviousFile   string `json:"previous"` // name of the previous file
	PreviousSHA256 string `json:"sha256"`   // SHA-256 of that file, in hex
	ChainHash      string `json:"chain"`    // hash of the last record in that file
}

// A Recovery ends a run that has no RunEnd, because its process was killed or the machine went down.
type Recovery struct {
	CutBytes int64 `json:"cut_bytes"` // bytes that were cut off the last segment
}

// A RunEnd is the end of a run. Each Request of the run has its Response.
type RunEnd struct {
	Requests int64 `json:"requests"` // number of requests of the run
}

// countSetKinds returns how many of the pointers of r are set. A valid record has one.
func (r *Record) countSetKinds() (n int) {
	for _, set := range []bool{r.RunStart != nil, r.Request != nil, r.Response != nil, r.Refusal != nil,
		r.Checkpoint != nil, r.SegmentStart != nil, r.Recovery != nil, r.ClockChange != nil, r.RunEnd != nil} {
		if set {
			n++
		}
	}
	return n
}

// maxTextBytes is how many bytes are kept of a text whose length a server determines.
const maxTextBytes = 1 << 10

// TruncateText returns the first 1 KiB of s, or less, as valid UTF-8.
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

// truncateTime returns t as records have it: in UTC, to the microsecond.
func truncateTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// maxLineBytes is how many bytes a line may have. The RunStart of a run with many overrides is long.
const maxLineBytes = 64 << 20
