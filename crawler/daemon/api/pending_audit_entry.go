package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// reasonHeader says why a call is made, for the audit.
const reasonHeader = "Decorum-Reason"

// maxAuditTextBytes is how much of a text that a caller chose is kept in the audit.
const maxAuditTextBytes = 1000

// A pendingAuditEntry is what the audit will say of a call.
type pendingAuditEntry struct {
	AuditEntry
	statusOverride int // the status, where a browser is sent elsewhere by the answer's
}

type pendingAuditEntryContextKey struct{}

// pendingAuditEntryOf returns the note of a call.
func pendingAuditEntryOf(r *http.Request) *pendingAuditEntry {
	return r.Context().Value(pendingAuditEntryContextKey{}).(*pendingAuditEntry)
}

// requestWithAuditNote gives a call its note.
func requestWithAuditNote(r *http.Request) *http.Request {
	n := &pendingAuditEntry{AuditEntry: AuditEntry{
		At: time.Now().UTC(), Remote: r.RemoteAddr, Method: r.Method, Path: truncateForAudit(r.URL.EscapedPath()),
		Reason: truncateForAudit(r.Header.Get(reasonHeader)),
	}}
	return r.WithContext(context.WithValue(r.Context(), pendingAuditEntryContextKey{}, n))
}

// truncateForAudit makes a text that a caller chose fit for the audit.
func truncateForAudit(text string) string {
	if len(text) > maxAuditTextBytes {
		text = text[:maxAuditTextBytes]
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// appendAudit puts a call into the audit. Where that cannot be, on a full disk say, the
// log has it: a brake must be possible all the same.
func (s *Server) appendAudit(r *http.Request, status int, err error) {
	n := pendingAuditEntryOf(r)
	n.Status = cmp.Or(n.statusOverride, status)
	n.Project, n.Host = truncateForAudit(r.PathValue("project")), truncateForAudit(cmp.Or(r.PathValue("host"), r.PostForm.Get("host")))
	n.Reason = cmp.Or(truncateForAudit(r.PostForm.Get("reason")), n.Reason)
	if err != nil {
		n.Error = truncateForAudit(err.Error())
	}
	if n.Status == http.StatusTooManyRequests {
		return
	}
	if untrusted := n.Who == "" || n.Status == http.StatusForbidden; untrusted && !s.untrustedAuditThrottle.allow(r.RemoteAddr) {
		return
	}
	if err := s.cfg.AuditLog.appendEntry(n.AuditEntry); err != nil {
		s.cfg.Log.Error("a call is missing in the audit", "call", n.AuditEntry, "error", err)
	}
}
