package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A projectError is an error in a project file. Error names the file, the line, the
// column, the field, and the expected value, and repeats no value of the file: the log
// and every reader of a daemon see it, and the file may hold passwords, or be a
// symbolic link to a file that they may not read. Detail is for the terminal of the
// operator who names the file.
type projectError struct {
	file    string
	at      place  // zero: the field is not in the file
	field   string // path of the field; empty: the file as a whole
	problem string // follows the field in a sentence; values are in quotes
	excerpt string // the line, and a mark below the column; empty: at is not known
}

// Error describes the error without the values of the file.
func (e *projectError) Error() string { return e.where() + hideQuoted(e.problem) }

// Detail describes the error with the value, shortened, and the line.
func (e *projectError) Detail() string {
	return e.where() + plain(shortenQuoted(e.problem)) + e.excerpt
}

// where returns the place of the error. It includes names of headers and hosts, which
// are part of a field's path and come from the file.
func (e *projectError) where() string {
	at := e.file
	if e.at.line > 0 {
		at = fmt.Sprintf("%s:%d:%d", e.file, e.at.line, e.at.column)
	}
	return at + ": " + plain(shorten(e.field))
}

// detailOf returns the text of an error for the operator's terminal: with the Detail of
// a projectError, and with long values shortened.
func detailOf(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if e := (*projectError)(nil); errors.As(err, &e) {
		return strings.Replace(text, e.Error(), e.Detail(), 1)
	}
	return shortenQuoted(text)
}

// maxQuoted is how many bytes of a value an error repeats.
const maxQuoted = 100

// quoted matches a value in an error, as %q or regexp writes it, up to the last
// quotation mark, since a pattern may contain some.
var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|(?s:`.*`)")

// hideQuoted returns a problem with "…" for each of its values.
func hideQuoted(problem string) string {
	return plain(quoted.ReplaceAllLiteralString(problem, `"…"`))
}

// shortenQuoted returns a text with no more than maxQuoted bytes of each value in it.
func shortenQuoted(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(value string) string {
		if len(value) <= maxQuoted+2 {
			return value
		}
		return shorten(value) + value[len(value)-1:]
	})
}

// shorten returns the first maxQuoted bytes of a text, and "…" if it is longer.
func shorten(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

// refuse returns an error at a place of the file, about a field or, if that is empty,
// about the file as a whole. problem must have the values of the file in quotes only.
func (d *draft) refuse(at place, field, problem string) error {
	return &exit{ExitUsage, &projectError{d.file, at, field, problem, d.excerpt(at)}}
}

// excerpt returns the line of a place, with a mark below its column, for the terminal.
// It hides control characters, since another user may have written the file.
func (d *draft) excerpt(at place) string {
	lines := strings.Split(d.text, "\n")
	if at.line < 1 || at.line > len(lines) {
		return ""
	}
	line := credentials.ReplaceAllStringFunc(strings.TrimSuffix(lines[at.line-1], "\r"), stars)
	line, column := excerpt(line, at.column)
	number := fmt.Sprint(at.line)
	return fmt.Sprintf("\n  %s | %s\n  %*s | %s^", number, line, len(number), "", indent(line, column))
}

// blame says where the value of a faulty field came from, and what is wrong
// with it.
func (d *draft) blame(f fault) error {
	for path := f.field; path != ""; path = parent(path) {
		if by, ok := d.flags[path]; ok {
			return usage("%s%s", by, shortenQuoted(f.problem))
		}
		if at, ok := d.at[path]; ok {
			return d.refuse(at, f.field, f.problem)
		}
	}
	if d.file != "" {
		return d.refuse(place{}, f.field, f.problem)
	}
	return usage("%s", cmp.Or(strings.TrimPrefix(shortenQuoted(f.problem), ": "), f.field))
}
