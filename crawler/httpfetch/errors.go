package httpfetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/http1"
)

// A fetchError is a network error, described for readers who do not know Go.
type fetchError struct {
	message string
	kind    decorum.ErrorKind // empty: the kind of err, if it has one
	err     error             // may be nil
}

// Error returns the message and the cause.
func (t *fetchError) Error() string {
	if t.err == nil {
		return t.message
	}
	return t.message + ": " + t.err.Error()
}

// Unwrap returns the kind and the cause, for errors.Is and errors.As.
func (t *fetchError) Unwrap() []error {
	var errs []error
	if t.kind != "" {
		errs = append(errs, t.kind)
	}
	if t.err != nil {
		errs = append(errs, t.err)
	}
	return errs
}

// A timeoutError says that a phase of a visit exceeded its time limit.
type timeoutError struct {
	phase string // what did not arrive, such as "answer"
	limit time.Duration
}

// Error says what did not arrive, and within what time.
func (s timeoutError) Error() string { return fmt.Sprintf("no %s within %v", s.phase, s.limit) }

// Timeout returns true, as the timeouts of package net do. crawler looks for this method.
func (timeoutError) Timeout() bool { return true }

// Reasons for a missing response that this package finds itself.
var (
	// errProxyAuth replaces a response of the proxy, which must not count as one of the site.
	errProxyAuth = errors.New("the proxy wants another user or password (407): see fetch.proxy")
	// errConnBroken ends a request that net/http is about to send a second time.
	errConnBroken = errors.New("the server closed the connection before it answered")
	// errInvalidStatus is the error of a response whose status belongs to no class (RFC 9110,
	// section 15), so that callers cannot interpret it. A status beyond 599 counts as a 5xx, as
	// that section says.
	errInvalidStatus = &fetchError{"the status of the answer is less than 100", decorum.Malformed, nil}
	// errUnexpectedUpgrade is the error of a response for which net/http returns the connection as
	// the body. A read of such a body ends neither with a context nor at an end of data.
	errUnexpectedUpgrade = &fetchError{
		"the server answers 101 (Switching Protocols) to a request without an Upgrade header", decorum.Malformed, nil,
	}
)

// translateRequestError returns the error of a request in plain words where it knows some, else err.
func (t *ticketedClient) translateRequestError(err error) error {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &certificate):
		return certificateError(certificate)
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch
	case isHeaderTooLong(err):
		return &fetchError{fmt.Sprintf("the header of the answer is longer than %d bytes", t.cfg.MaxHeaderBytes),
			decorum.Malformed, nil}
	case isConnError(err):
		return err
	case errors.As(err, new(*http1.MalformedResponseError)),
		strings.Contains(err.Error(), "transport connection broken"):
		return &fetchError{"the answer is not valid HTTP", decorum.Malformed, err}
	}
	return err
}

// certificateError returns an error that says what is wrong with a server's certificate.
func certificateError(err *tls.CertificateVerificationError) error {
	var (
		invalid x509.CertificateInvalidError
		message = "the server's certificate is not valid"
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().After(invalid.Cert.NotAfter):
		message = "the server's certificate has expired on " + invalid.Cert.NotAfter.Format(time.DateOnly)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		message = "the server's certificate is not valid before " + invalid.Cert.NotBefore.Format(time.DateOnly)
	case errors.As(err, new(x509.HostnameError)):
		message = "the server's certificate is for another host"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		message = "the server's certificate is from an unknown authority"
	}
	return &fetchError{message, "", err}
}

// isHeaderTooLong reports whether a response failed because its header is too long. net/http has no
// error type for that, so it looks for the messages.
func isHeaderTooLong(err error) bool {
	if errors.Is(err, http1.ErrHeaderTooLong) {
		return true
	}
	messages := []string{"server response headers exceeded", "response header list larger", "header list too large"}
	return slices.ContainsFunc(messages, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// isConnError reports whether the connection failed, rather than the data that came over it.
func isConnError(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled)
}

// isBrokenConn is isConnError, but for expired time limits.
func isBrokenConn(err error) bool {
	var network net.Error
	return isConnError(err) && !(errors.As(err, &network) && network.Timeout())
}

// bodyReadError returns why a body could not be read to its end, in plain words where it knows some.
// n is how many bytes arrived.
func bodyReadError(err error, res *http.Response, n int64) error {
	switch {
	case errors.Is(err, decorum.Malformed):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) && res.ContentLength >= 0:
		return &fetchError{fmt.Sprintf("the connection ended after %d of the %d bytes of the body", n,
			res.ContentLength), "", err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &fetchError{"the connection ended before the body did", "", err}
	case len(res.TransferEncoding) > 0 && !isConnError(err):
		return &fetchError{"the chunks of the body are malformed", decorum.Malformed, err}
	}
	return err
}
