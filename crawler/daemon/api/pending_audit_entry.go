package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// reasonHeader is the request header with the reason of a call, for the audit.
const reasonHeader = "Decorum-Reason"

// maxAuditTextBytes is how many bytes of a text from a caller the audit keeps.
const maxAuditTextBytes = 1000

// A pendingAuditEntry is the audit entry of a call that is not answered yet. It is in the context
// of the request, where the steps of the call fill it in.
type pendingAuditEntry struct {
	AuditEntry
	statusOverride int // the status to record instead of a redirect's; 0: that of the answer
}

type pendingAuditEntryContextKey struct{}

// pendingAuditEntryOf returns the entry of a call. It panics without requestWithAuditNote.
func pendingAuditEntryOf(r *http.Request) *pendingAuditEntry {
	return r.Context().Value(pendingAuditEntryContextKey{}).(*pendingAuditEntry)
}

// requestWithAuditNote returns the request with a new pendingAuditEntry in its context.
func requestWithAuditNote(r *http.Request) *http.Request {
	n := &pendingAuditEntry{AuditEntry: AuditEntry{
		At: time.Now().UTC(), Remote: r.RemoteAddr, Method: r.Method, Path: truncateForAudit(r.URL.EscapedPath()),
		Reason: truncateForAudit(r.Header.Get(reasonHeader)),
	}}
	return r.WithContext(context.WithValue(r.Context(), pendingAuditEntryContextKey{}, n))
}

// truncateForAudit returns the first maxAuditTextBytes of a text from a caller, as valid UTF-8.
func truncateForAudit(text string) string {
	if len(text) > maxAuditTextBytes {
		text = text[:maxAuditTextBytes]
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// appendAudit records a call in the audit. If the audit cannot be written, as on a full disk, it
// records the call in the log: setting a brake must be possible all the same.
func (s *Server) appendAudit(r *http.Request, status int, err error) {
	// Complete the entry with what only the handled request shows.
	n := pendingAuditEntryOf(r)
	n.Status = cmp.Or(n.statusOverride, status)
	n.Project, n.Host = truncateForAudit(r.PathValue("project")),
		truncateForAudit(cmp.Or(r.PathValue("host"), r.PostForm.Get("host")))
	n.Reason = cmp.Or(truncateForAudit(r.PostForm.Get("reason")), n.Reason)
	if err != nil {
		n.Error = truncateForAudit(err.Error())
	}
	// Leave out calls that untrusted callers could fill the audit with.
	if n.Status == http.StatusTooManyRequests {
		return
	}
	if untrusted := n.Who == "" || n.Status == http.StatusForbidden; untrusted &&
		!s.untrustedAuditThrottle.allow(r.RemoteAddr) {
		return
	}
	if err := s.cfg.AuditLog.appendEntry(n.AuditEntry); err != nil {
		s.cfg.Log.Error("cannot record a call in the audit", "call", n.AuditEntry, "error", err)
	}
}
