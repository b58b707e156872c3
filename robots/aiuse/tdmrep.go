package aiuse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// MaxTDMRepBytes is the number of bytes of a tdmrep.json that are read.
const MaxTDMRepBytes = 64 << 10

// maxPolicyBytes is the maximum length of a policy's address, in bytes. Longer addresses are dropped.
const maxPolicyBytes = 2048

// The category and the field of signals from the TDM Reservation Protocol.
const (
	categoryTDM         = "tdm"
	tdmReservationField = "tdm-reservation"
)

// A TDMRep is a parsed /.well-known/tdmrep.json. It says which content of a site may be mined for text
// and data, by the TDM Reservation Protocol. It is immutable and safe for concurrent use. A nil TDMRep
// has no rules.
type TDMRep struct{ rules []tdmRule }

// A tdmRule is a rule of a tdmrep.json: the signal for the paths that pattern matches.
type tdmRule struct {
	pattern match.Pattern
	signal  Signal
}

// TDMRepURL returns the URL of an origin's tdmrep.json, the zero URL for the zero Origin.
func TDMRepURL(o decorum.Origin) decorum.URL {
	if o.IsZero() {
		return decorum.URL{}
	}
	u, _ := o.RobotsURL().Resolve("/.well-known/tdmrep.json") // a path can always be resolved
	return u
}

// ParseTDMRep parses at most MaxTDMRepBytes of a tdmrep.json. If the file is invalid, it returns an
// error and a TDMRep with the rules before it. It ignores a rule whose location is not a path, or
// whose tdm-reservation is neither 0 nor 1. Its time is linear in the length of body.
func ParseTDMRep(body []byte) (*TDMRep, error) {
	long := len(body) > MaxTDMRepBytes
	text := bytes.TrimPrefix(body[:min(len(body), MaxTDMRepBytes)], []byte("\ufeff"))
	file := &TDMRep{}
	err := file.parseRules(text)
	if long && err != nil {
		err = fmt.Errorf("longer than %d bytes; the rest is not read", MaxTDMRepBytes)
	}
	return file, err
}

// parseRules appends the rules of a list, or a single rule without a list, to t.
func (t *TDMRep) parseRules(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		start, err := d.Token()
		if err != nil {
			return explainJSONEOF(err)
		}
		if start != json.Delim('[') {
			return errors.New("a list of rules is expected")
		}
	}
	// Decode one rule after the other, and count the lines before each.
	at, line := 0, 1 // text[at] is in line
	for d.More() {
		begins := int(d.InputOffset())
		begins += len(text[begins:]) - len(bytes.TrimLeft(text[begins:], ", \t\r\n"))
		line += bytes.Count(text[at:begins], []byte("\n"))
		at = begins
		var rule json.RawMessage
		if err := d.Decode(&rule); err != nil {
			return explainJSONEOF(err)
		}
		if r, ok := parseTDMRule(rule, line); ok {
			t.rules = append(t.rules, r)
		}
	}
	return nil
}

// explainJSONEOF replaces the error for a file that ends too early by one that says so.
func explainJSONEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends too early")
	}
	return err
}

// parseTDMRule parses one rule, which begins in line, and reports whether it is valid.
func parseTDMRule(text []byte, line int) (tdmRule, bool) {
	var rule struct {
		Location    string          `json:"location"`
		Reservation json.RawMessage `json:"tdm-reservation"`
		Policy      json.RawMessage `json:"tdm-policy"`
	}
	if json.Unmarshal(text, &rule) != nil || !syntax.BeginsWithSlashOrStar(rule.Location) {
		return tdmRule{}, false
	}
	policy := ""
	_ = json.Unmarshal(rule.Policy, &policy) // a policy that is not a string is ignored
	s, ok := ParseTDMReservation(InTDMRep, strings.Trim(string(rule.Reservation), `"`), policy)
	s.Line = line
	return tdmRule{match.CompilePattern(rule.Location), s}, ok
}

// SignalsForURL returns the signal of the first rule that matches u, because authors put the most
// specific rules first. It returns at most one signal.
func (t *TDMRep) SignalsForURL(u decorum.URL) Signals {
	if t == nil {
		return nil
	}
	for i := range t.rules {
		if r := &t.rules[i]; r.pattern.Matches(u.PathAndQuery()) {
			return Signals{r.signal}
		}
	}
	return nil
}

// Check returns the verdict for u and the purposes of a crawl. Its Group is InTDMRep, because the file
// has no groups.
func (t *TDMRep) Check(u decorum.URL, purposes []string) robots.Verdict {
	if conflict := t.SignalsForURL(u).ConflictWithPurposes(purposes); conflict != nil {
		return conflict.verdict(string(InTDMRep))
	}
	return robots.Verdict{Allowed: true, Group: string(InTDMRep)}
}

// ParseTDMReservation parses a tdm-reservation: "1" reserves the right to mine text and data, and "0"
// permits it. It returns false for all other values. policy is the tdm-policy, which may be empty.
func ParseTDMReservation(in Source, value, policy string) (Signal, bool) {
	s := Signal{Source: in, Field: tdmReservationField, Category: categoryTDM}
	switch strings.TrimSpace(value) {
	case "1":
		s.Preference = Disallowed
	case "0":
		s.Preference = Allowed
	default:
		return Signal{}, false
	}
	if policy = strings.TrimSpace(policy); len(policy) <= maxPolicyBytes {
		s.TDMPolicy = strings.Clone(policy)
	}
	return s, true
}
