package api

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// A Brake stops or slows a host, in all projects.
type Brake struct {
	Host           string       `json:"host"`               // or domain, without scheme and port
	WithSubdomains bool         `json:"domain,omitempty"`   // its subdomains as well
	Stop           bool         `json:"stop,omitempty"`     // no visit at all
	Delay          Milliseconds `json:"delay_ms,omitempty"` // else: at least this rest, one visit at a time
	Reason         string       `json:"reason"`             // for people; never empty
	By             string       `json:"by"`                 // the name of the token that put it on
	Since          time.Time    `json:"since"`              // when it was put on
	Expires        time.Time    `json:"expires,omitzero"`   // zero: not by itself
}

func (s *Server) listBrakes(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return jsonListReply(s.daemon.Brakes(r.Context()))
}

// A BrakeRequest is what a brake is to do. The host is in the path.
type BrakeRequest struct {
	WithSubdomains bool         `json:"domain,omitempty"`   // brake its subdomains as well
	Stop           bool         `json:"stop,omitempty"`     // no visit at all; else delay_ms is needed
	Delay          Milliseconds `json:"delay_ms,omitempty"` // at least this rest, one visit at a time
	Reason         string       `json:"reason,omitempty"`   // why; compulsory, here or in Decorum-Reason
	Duration       Milliseconds `json:"for_ms,omitempty"`   // lifted by itself after so long; 0: not
	Expires        time.Time    `json:"expires,omitzero"`   // lifted by itself then; not together with for_ms
}

func (s *Server) setBrake(_ http.ResponseWriter, r *http.Request) (reply, error) {
	var req BrakeRequest
	if err := readJSON(r, &req); err != nil {
		return reply{}, err
	}
	note := pendingAuditEntryOf(r)
	req.Reason = cmp.Or(req.Reason, note.Reason)
	note.Reason = truncateForAudit(req.Reason)
	b, err := req.newBrake(r.PathValue("host"), CallerFromContext(r.Context()).Name, time.Now())
	if err != nil {
		return reply{}, err
	}
	if p := r.PathValue("project"); p != "" {
		if _, err := s.daemon.Project(r.Context(), p); err != nil {
			return reply{}, err
		}
	}
	if err := s.daemon.SetBrake(r.Context(), b); err != nil {
		return reply{}, err
	}
	return reply{body: b}, nil
}

// newBrake returns the brake that is ordered.
func (o BrakeRequest) newBrake(host, by string, now time.Time) (Brake, error) {
	b := Brake{
		Host: strings.ToLower(host), WithSubdomains: o.WithSubdomains, Stop: o.Stop, Delay: o.Delay, Reason: strings.TrimSpace(o.Reason),
		By: by, Since: now.UTC(), Expires: o.Expires.UTC(),
	}
	if o.Duration > 0 {
		b.Expires = b.Since.Add(time.Duration(o.Duration))
	}
	switch {
	case b.Reason == "":
		return b, InvalidInput("a brake needs a reason, which is kept with it")
	case !b.Stop && b.Delay <= 0:
		return b, InvalidInput("a brake needs stop, or a delay_ms of more than 0")
	case b.Stop && b.Delay != 0:
		return b, InvalidInput("a brake either stops or slows: give stop or delay_ms, not both")
	case o.Duration < 0, o.Duration > 0 && !o.Expires.IsZero():
		return b, InvalidInput("give for_ms, of more than 0, or expires, not both")
	case !b.Expires.IsZero() && !b.Expires.After(now):
		return b, InvalidInput("a brake that expires at %s is over already", b.Expires.Format(time.RFC3339))
	}
	return b, nil
}

func (s *Server) liftBrake(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return reply{}, s.daemon.LiftBrake(r.Context(), strings.ToLower(r.PathValue("host")))
}
