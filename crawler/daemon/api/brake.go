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
	Stop           bool         `json:"stop,omitempty"`     // no visit starts
	Delay          Milliseconds `json:"delay_ms,omitempty"` // without stop: the shortest pause, and one visit at a time
	Reason         string       `json:"reason"`             // for people; never empty
	By             string       `json:"by"`                 // the name of the token that set the brake
	Since          time.Time    `json:"since"`              // when it was set
	// Expires is when the brake ends by itself; absent: it holds until it is lifted.
	Expires time.Time `json:"expires,omitzero"`
}

func (s *Server) listBrakes(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return jsonListReply(s.daemon.Brakes(r.Context()))
}

// A BrakeRequest describes the brake to set. The host is in the path of the call.
type BrakeRequest struct {
	WithSubdomains bool         `json:"domain,omitempty"`   // brake the subdomains as well
	Stop           bool         `json:"stop,omitempty"`     // start no visit; without it, delay_ms is required
	Delay          Milliseconds `json:"delay_ms,omitempty"` // the shortest pause, and one visit at a time
	// Reason is for people; it is required, here or in the header of the call.
	Reason   string       `json:"reason,omitempty"`
	Duration Milliseconds `json:"for_ms,omitempty"` // the brake ends by itself after this time; 0: it does not
	// Expires is when the brake ends by itself; not together with for_ms.
	Expires time.Time `json:"expires,omitzero"`
}

// setBrake sets a brake, and answers with it. The path may name a project, which must exist;
// the brake holds for all projects all the same.
func (s *Server) setBrake(_ http.ResponseWriter, r *http.Request) (reply, error) {
	var req BrakeRequest
	if err := readJSON(r, &req); err != nil {
		return reply{}, err
	}
	// The reason may be in the body or in the header; the audit records the one that counts.
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

// newBrake returns the Brake for a request from the caller by, or InvalidInput.
func (o BrakeRequest) newBrake(host, by string, now time.Time) (Brake, error) {
	b := Brake{
		Host: strings.ToLower(host), WithSubdomains: o.WithSubdomains, Stop: o.Stop, Delay: o.Delay,
		Reason: strings.TrimSpace(o.Reason),
		By:     by, Since: now.UTC(), Expires: o.Expires.UTC(),
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
		return b, InvalidInput("a brake that expires at %s has already ended", b.Expires.Format(time.RFC3339))
	}
	return b, nil
}

func (s *Server) liftBrake(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return reply{}, s.daemon.LiftBrake(r.Context(), strings.ToLower(r.PathValue("host")))
}
