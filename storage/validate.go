package storage

import (
	"errors"
	"fmt"
	"net/http"
)

// checkRequest returns an error if no Store may keep what e says of its request.
func (e *Entry) checkRequest() error {
	r := e.Request
	switch {
	case e.Sent && r.IsSafe():
		return fmt.Errorf("%v: marked as sent, which is for what must not be sent twice", e.URL)
	case r == nil:
		return nil
	case r.Method == "" || r.Method == http.MethodGet:
		return fmt.Errorf("%v: a request by %q; GET is the one that is not named", e.URL, r.Method)
	case !e.URL.Origin().IsHTTP():
		return fmt.Errorf("%v: a request by %s, which is one of HTTP", e.URL, r.Method)
	case len(r.Body) > MaxBodyBytes:
		return fmt.Errorf("%v: a request with a body of %d bytes, the most is %d", e.URL, len(r.Body), MaxBodyBytes)
	case e.Source == SourcePrerequisite || !e.RobotsFor.IsZero():
		return errors.New("an errand of the crawl, which is asked for by GET alone")
	}
	return nil
}

// Validate returns an error if no Store may keep the entry.
func (e *Entry) Validate() error {
	switch {
	case e.URL.IsZero():
		return errors.New("entry without a URL")
	case e.PriorityClass >= NumClasses:
		return fmt.Errorf("%v: class %d, the highest is %d", e.URL, e.PriorityClass, NumClasses-1)
	case e.Depth < 0 || e.FailedAttempts < 0 || e.Redirects < 0:
		return fmt.Errorf("%v: depth, attempt or redirects are negative", e.URL)
	case e.VisitHistorySummary != nil && max(len(e.VisitHistorySummary.ETag), len(e.VisitHistorySummary.LastModified)) > MaxValidatorBytes:
		return fmt.Errorf("%v: a validator is longer than %d bytes", e.URL, MaxValidatorBytes)
	case len(e.CallbackData) > MaxCallbackDataBytes:
		return fmt.Errorf("%v: context of %d bytes, the most is %d", e.URL, len(e.CallbackData), MaxCallbackDataBytes)
	case e.UseUncleanedURL && e.UncleanedURL.IsZero(), !e.UncleanedURL.IsZero() && e.UncleanedURL.Origin() != e.URL.Origin():
		return fmt.Errorf("%v: found as %q, which is no URL of the same origin", e.URL, e.UncleanedURL)
	}
	return e.checkRequest()
}

// validate returns an error if no Store may take the ack.
func (a *Ack) validate() error {
	if a.HostState != nil && len(a.HostState.EncodedStats) > MaxStatsBytes {
		return fmt.Errorf("memo of %v: %d bytes, the most is %d", a.Lease.URL.Origin().Host(), len(a.HostState.EncodedStats), MaxStatsBytes)
	}
	return a.Lease.Validate()
}

// ValidateEntries returns an error if no Store may add one of the entries.
func ValidateEntries(entries []Entry) error { return validateAll("add", entries, (*Entry).Validate) }

// ValidateAcks returns an error if no Store may take one of the acks.
func ValidateAcks(acks []Ack) error { return validateAll("ack", acks, (*Ack).validate) }

// ValidateDumps returns an error if no Store may take one of the dumps.
func ValidateDumps(dumps []OriginDump) error {
	return validateAll("import", dumps, (*OriginDump).validate)
}

// validateAll returns the first error of validate, as one of the call.
func validateAll[T any](call string, all []T, validate func(*T) error) error {
	for i := range all {
		if err := validate(&all[i]); err != nil {
			return fmt.Errorf("%s: %w", call, err)
		}
	}
	return nil
}
