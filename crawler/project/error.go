package project

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// An Error is an error in a project file. Its text names the file, the line, the
// column, the field, and the expected value, and repeats no value of the file: the log
// and every reader of a daemon see it, and the file may hold passwords, or be a
// symbolic link to a file that they may not read. Detail is for the terminal of the
// operator who names the file.
type Error struct {
	File         string // as it was named
	Line, Column int    // of the value, counted from 1; 0: the field is not in the file
	Field        string // its path, as in politeness.delay; empty: the file as a whole
	problem      string // follows the field in a sentence; values are in quotes
	excerpt      string // the line, and a mark below the column; empty: the place is not known
}

// Error describes the error without the values of the file.
func (e *Error) Error() string { return e.location() + plaintext.HideQuoted(e.problem) }

// unredactedText describes the error with the value, shortened, and the line.
func (e *Error) unredactedText() string {
	return e.location() + plaintext.ReplaceControlChars(plaintext.TruncateQuotedValues(e.problem)) + e.excerpt
}

// location returns the place of the error. It includes names of headers and hosts, which
// are part of a field's path and come from the file.
func (e *Error) location() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	return at + ": " + plaintext.ReplaceControlChars(plaintext.Truncate(e.Field))
}

// DetailedErrorText returns the text of an error for the operator's terminal: with the Detail of
// an Error, and with long values shortened.
func DetailedErrorText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if e := (*Error)(nil); errors.As(err, &e) {
		return strings.Replace(text, e.Error(), e.unredactedText(), 1)
	}
	return plaintext.TruncateQuotedValues(text)
}

// A FieldProblem is a field that cannot stand as it is, and why: what reads well after
// the field's name. It has the values of the file in quotes only, as %q writes them.
type FieldProblem struct{ FieldPath, Problem string }

// errorAt returns an error at a place of the file, about a field or, if that is empty,
// about the file as a whole. problem must have the values of the file in quotes only.
func (d *File) errorAt(at textPosition, field, problem string) error {
	return &Error{d.file, at.line, at.column, field, problem, d.excerptAt(at)}
}

// FieldError says where the value of a faulty field came from, and what is wrong
// with it.
func (d *File) FieldError(f FieldProblem) error {
	for path := f.FieldPath; path != ""; path = parentFieldPath(path) {
		if setBy, ok := d.CommandLineArgByField[path]; ok {
			return usage.Errorf("%s%s", setBy, plaintext.TruncateQuotedValues(f.Problem))
		}
		if at, ok := d.positions[path]; ok {
			return d.errorAt(at, f.FieldPath, f.Problem)
		}
	}
	if d.file != "" {
		return d.errorAt(textPosition{}, f.FieldPath, f.Problem)
	}
	return usage.Errorf("%s", cmp.Or(strings.TrimPrefix(plaintext.TruncateQuotedValues(f.Problem), ": "), f.FieldPath))
}

// maxExcerptWidth is how many characters of a line an error shows.
const maxExcerptWidth = 160

// excerptAroundColumn returns what an error shows of a line, and which column of it is the one that
// is meant. Tabs stay tabs.
func excerptAroundColumn(line string, column int) (string, int) {
	text := []rune(line)
	if from := column - maxExcerptWidth/2; len(text) > maxExcerptWidth && from > 0 {
		text, column = append([]rune("…"), text[min(from, len(text)):]...), column-from+1
	}
	if len(text) > maxExcerptWidth {
		text = append(text[:maxExcerptWidth], '…')
	}
	cells := strings.Split(string(text), "\t")
	for i := range cells {
		cells[i] = plaintext.ReplaceControlChars(cells[i])
	}
	return strings.Join(cells, "\t"), column
}

// credentialsPattern are what a URL has before its host; stars hide them, and keeps
// the place of what follows.
var credentialsPattern = regexp.MustCompile(`//[^/\s@]*@`)

func maskCredentials(s string) string {
	return "//" + strings.Repeat("*", utf8.RuneCountInString(s)-3) + "@"
}

// caretIndent returns the blanks that put what follows under a column of line: tabs
// stay tabs, so that it is under it however wide they are shown.
func caretIndent(line string, column int) string {
	var b strings.Builder
	for _, r := range line {
		if column--; column <= 0 {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// excerptAt returns the line of a place, with a mark below its column, for the terminal.
// It hides control characters, since another user may have written the file.
func (d *File) excerptAt(at textPosition) string {
	lines := strings.Split(d.Text, "\n")
	if at.line < 1 || at.line > len(lines) {
		return ""
	}
	line := credentialsPattern.ReplaceAllStringFunc(strings.TrimSuffix(lines[at.line-1], "\r"), maskCredentials)
	line, column := excerptAroundColumn(line, at.column)
	number := fmt.Sprint(at.line)
	return fmt.Sprintf("\n  %s | %s\n  %*s | %s^", number, line, len(number), "", caretIndent(line, column))
}
