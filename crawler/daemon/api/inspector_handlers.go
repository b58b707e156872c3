package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"
)

// inspectorHandlers holds the handlers of calls that an Inspector answers, of a daemon's project or
// of a crawl in the foreground.
type inspectorHandlers struct {
	inspectorOf  func(ctx context.Context, project string) (Inspector, error)
	eventStreams *eventStreams // its stopContext ends streamed answers and bodies as well
	log          *slog.Logger
}

func (h *inspectorHandlers) explainURL(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	u := r.URL.Query().Get("url")
	if u == "" {
		return reply{}, newProblem(http.StatusBadRequest, "the parameter url is required: the URL to explain")
	}
	return jsonReply(i.ExplainURL(r.Context(), u))
}

// getReport answers with one JSON object, or, if the caller accepts JSON Lines, with a stream that
// does not hold all hosts in memory.
func (h *inspectorHandlers) getReport(i Inspector, w http.ResponseWriter, r *http.Request) (reply, error) {
	w.Header().Set("Vary", "Accept")
	q := r.URL.Query()
	reportQuery := ReportQuery{Host: q.Get("host"), Limit: queryNumber(q, "limit", 100)}
	if strings.Contains(r.Header.Get("Accept"), jsonLinesType) {
		return h.streamReply(r, jsonLinesType, func(w io.Writer) error {
			return i.Report(r.Context(), reportQuery, func(report *StreamedReport) error {
				return report.WriteJSONLines(w)
			})
		}), nil
	}
	return jsonReply(FullReport(r.Context(), i.Report, reportQuery))
}

func (h *inspectorHandlers) getFrontierStats(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	return jsonReply(i.FrontierStats(r.Context()))
}

// listFrontierURLs streams URLs of the frontier. The data that callbacks attached to a URL and the
// body of its request may be secret, so only callers with the role operate get them.
func (h *inspectorHandlers) listFrontierURLs(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	q := r.URL.Query()
	urlQuery := FrontierURLQuery{
		Host: q.Get("host"), Origin: q.Get("origin"), State: q.Get("state"), Limit: queryNumber(q, "limit", 0),
	}
	maySeeSecrets := CallerFromContext(r.Context()).Role.Allows(RoleOperate)
	return h.streamReply(r, jsonLinesType, func(w io.Writer) error {
		return writeJSONLines(w, func(yield func(*FrontierURL, error) bool) {
			for u, err := range i.FrontierURLs(r.Context(), urlQuery) {
				if u != nil && !maySeeSecrets {
					u.CallbackData, u.RequestBody = nil, nil
				}
				if !yield(u, err) {
					return
				}
			}
		})
	}), nil
}

func (h *inspectorHandlers) listLedgerRecords(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	q := r.URL.Query()
	return h.streamReply(r, jsonLinesType, func(w io.Writer) error {
		return writeJSONLines(w, i.LedgerRecords(r.Context(), LedgerQuery{URL: q.Get("url"), Host: q.Get("host")}))
	}), nil
}

// addURLs queues the URLs of the body. It reads the body as fast as the Inspector accepts URLs. The
// call lasts as long as the body does, unless a minute passes without a byte.
func (h *inspectorHandlers) addURLs(i Inspector, w http.ResponseWriter, r *http.Request) (reply, error) {
	body := &idleTimeoutReader{
		body: r.Body, serverStopping: h.eventStreams.stopContext.Done(),
		setDeadline: http.NewResponseController(w).SetReadDeadline,
	}
	lines := bodyLines(body)
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "application/json" {
		lines = jsonArrayStrings(body)
	}
	added, err := i.AddURLs(r.Context(), lines)
	if err == nil {
		return reply{body: added}, nil
	}
	// Stop net/http from reading the rest of the body, for which the caller may wait.
	_ = body.setDeadline(time.Now())
	// Answer with the problem, and with what was added before it.
	var p *Problem
	switch {
	case errors.As(err, &p):
		p = new(*p)
	case errors.Is(err, errStopping):
		p = newProblem(http.StatusServiceUnavailable, "%w", errStopping)
	case body.readErr != nil:
		p = newProblem(http.StatusBadRequest, "the body ended too early: %w", body.readErr)
	default:
		p = problemOf(h.log, r, err)
	}
	p.PartialResult = added
	return reply{}, p
}
