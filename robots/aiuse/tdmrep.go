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

// MaxTDMRepBytes is how many bytes of a tdmrep.json are read.
const MaxTDMRepBytes = 64 << 10

// maxPolicyBytes is how long the address of a policy may be, in bytes, to be kept.
const maxPolicyBytes = 2048

// Words of the TDM Reservation Protocol.
const (
	categoryTDM         = "tdm" // the category
	tdmReservationField = "tdm-reservation"
)

// A TDMRep is what a site's /.well-known/tdmrep.json says: which of its content
// may be mined for text and data, by the TDM Reservation Protocol. It is immutable
// and safe for concurrent use; a nil one says nothing.
type TDMRep struct{ rules []tdmRule }

type tdmRule struct {
	pattern match.Pattern
	signal  Signal
}

// TDMRepURL returns where the file of an origin is, zero for the zero Origin.
func TDMRepURL(o decorum.Origin) decorum.URL {
	if o.IsZero() {
		return decorum.URL{}
	}
	u, _ := o.RobotsURL().Resolve("/.well-known/tdmrep.json") // a path can always be resolved
	return u
}

// ParseTDMRep reads a tdmrep.json, as far as MaxTDMRepBytes. The error says what is
// wrong with it; what could be read up to there counts all the same. A rule
// without a location that is a path, or whose tdm-reservation is neither 0 nor 1,
// says nothing. Its time is linear in the body.
func ParseTDMRep(body []byte) (*TDMRep, error) {
	long := len(body) > MaxTDMRepBytes
	text := bytes.TrimPrefix(body[:min(len(body), MaxTDMRepBytes)], []byte("\ufeff"))
	file := &TDMRep{}
	err := file.parseRules(text)
	if long && err != nil {
		err = fmt.Errorf("longer than %d bytes, of which the rest is not read", MaxTDMRepBytes)
	}
	return file, err
}

// parseRules reads a list of rules, or one alone.
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
	at, line := 0, 1
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

// explainJSONEOF words the end of a file that came too early.
func explainJSONEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}

// parseTDMRule reads one rule, and reports whether it says something.
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
	_ = json.Unmarshal(rule.Policy, &policy) // one that is no string is none
	s, ok := ParseTDMReservation(InTDMRep, strings.Trim(string(rule.Reservation), `"`), policy)
	s.Line = line
	return tdmRule{match.CompilePattern(rule.Location), s}, ok
}

// SignalsForURL returns what the file says of u: by the first rule that matches, as its
// author puts the most specific first. It is at most one signal.
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

// Check judges u for a crawl of the stated purposes. The file has no groups: that
// of the verdict is InTDMRep.
func (t *TDMRep) Check(u decorum.URL, purposes []string) robots.Verdict {
	if conflict := t.SignalsForURL(u).ConflictWithPurposes(purposes); conflict != nil {
		return conflict.verdict(string(InTDMRep))
	}
	return robots.Verdict{Allowed: true, Group: string(InTDMRep)}
}

// ParseTDMReservation reads a tdm-reservation: "1" reserves the right to mine text and
// data, "0" does not; anything else is unset, and false is returned.
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
