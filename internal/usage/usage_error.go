// Package usage marks errors of wrong usage or configuration, which the operator can correct. When
// one is returned, nothing was sent. A command that fails with one exits with code 2.
package usage

import "fmt"

// An Error is an error of wrong usage or configuration.
type Error struct{ err error }

// Errorf returns an *Error with the text and the wrapped errors of fmt.Errorf.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Error returns what is wrong and what to do about it.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error of fmt.Errorf.
func (e *Error) Unwrap() error { return e.err }
