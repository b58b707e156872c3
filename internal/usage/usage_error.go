// Package usage marks errors of wrong usage or configuration, which the operator can
// mend. Nothing was sent when one is returned. A command that fails with one exits with
// code 2.
package usage

import "fmt"

// An Error is an error of wrong usage or configuration.
type Error struct{ err error }

// Errorf returns an *Error with a text and wrapped errors as fmt.Errorf makes them.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// Error says what is wrong, and what to do about it.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error that fmt.Errorf made.
func (e *Error) Unwrap() error { return e.err }
