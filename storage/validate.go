package storage

import (
	"errors"
	"fmt"
	"net/http"
)

// checkRequest returns an error if a Store must refuse e because of its Request or Sent.
func (e *Entry) checkRequest() error {
	r := e.Request
	switch {
	case e.Sent && r.IsSafe():
		return fmt.Errorf("%v: marked as sent, which only a request with an unsafe method can be", e.URL)
	case r == nil:
		return nil
	case r.Method == "" || r.Method == http.MethodGet:
		return fmt.Errorf("%v: request with method %q: for a GET, Request must be nil", e.URL, r.Method)
	case !e.URL.Origin().IsHTTP():
		return fmt.Errorf("%v: method %s needs an http or https URL", e.URL, r.Method)
	case len(r.Body) > MaxBodyBytes:
		return fmt.Errorf("%v: request body of %d bytes, at most %d are allowed", e.URL, len(r.Body), MaxBodyBytes)
	case e.Source == SourcePrerequisite || !e.RobotsFor.IsZero():
		return errors.New("a prerequisite visit must use GET")
	}
	return nil
}

// Validate returns an error if a Store must refuse the entry: a field is missing, out of range or
// contradicts another.
func (e *Entry) Validate() error {
	switch {
	case e.URL.IsZero():
		return errors.New("entry without a URL")
	case e.PriorityClass >= NumClasses:
		return fmt.Errorf("%v: class %d, the highest is %d", e.URL, e.PriorityClass, NumClasses-1)
	case e.Depth < 0 || e.FailedAttempts < 0 || e.Redirects < 0:
		return fmt.Errorf("%v: depth, failed attempts or redirects are negative", e.URL)
	case len(e.CallbackData) > MaxCallbackDataBytes:
		return fmt.Errorf("%v: callback data of %d bytes, at most %d are allowed", e.URL,
			len(e.CallbackData), MaxCallbackDataBytes)
	case e.UseUncleanedURL && e.UncleanedURL.IsZero(), !e.UncleanedURL.IsZero() &&
		e.UncleanedURL.Origin() != e.URL.Origin():
		return fmt.Errorf("%v: uncleaned URL %q is not of the same origin", e.URL, e.UncleanedURL)
	}
	if err := e.VisitHistorySummary.validate(); err != nil {
		return fmt.Errorf("%v: %w", e.URL, err)
	}
	return e.checkRequest()
}

// validate returns an error if a Store must refuse the summary. nil is valid.
func (p *VisitHistorySummary) validate() error {
	switch {
	case p == nil:
		return nil
	case max(len(p.ETag), len(p.LastModified), len(p.FreshBy), len(p.VariantKey)) > MaxValidatorBytes:
		return fmt.Errorf("a validator is longer than %d bytes", MaxValidatorBytes)
	case p.FreshFor < 0:
		return errors.New("the time for which the response was fresh is negative")
	case p.EncodedBodyLen < 0:
		return errors.New("the length of the body is negative")
	}
	return nil
}

// validate returns an error if a Store must refuse the ack.
func (a *Ack) validate() error {
	if a.HostState != nil && len(a.HostState.EncodedStats) > MaxStatsBytes {
		return fmt.Errorf("statistics of host %v: %d bytes, at most %d are allowed", a.Lease.URL.Origin().Host(),
			len(a.HostState.EncodedStats), MaxStatsBytes)
	}
	return a.Lease.Validate()
}

// ValidateEntries returns an error if Add must refuse one of the entries: see Entry.Validate.
func ValidateEntries(entries []Entry) error { return validateAll("add", entries, (*Entry).Validate) }

// ValidateAcks returns an error if Ack must refuse one of the acks: its Entry is invalid, or its
// EncodedStats are longer than MaxStatsBytes.
func ValidateAcks(acks []Ack) error { return validateAll("ack", acks, (*Ack).validate) }

// ValidateDumps returns an error if Import must refuse one of the dumps: it has no origin, a URL of
// another origin or an invalid one, or EncodedStats longer than MaxStatsBytes.
func ValidateDumps(dumps []OriginDump) error {
	return validateAll("import", dumps, (*OriginDump).validate)
}

// validateAll returns the first error of validate, prefixed with the name of the call.
func validateAll[T any](call string, all []T, validate func(*T) error) error {
	for i := range all {
		if err := validate(&all[i]); err != nil {
			return fmt.Errorf("%s: %w", call, err)
		}
	}
	return nil
}
