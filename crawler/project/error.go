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

// An Error is an error in a project file. Its text names the file, the line, the column, the field,
// and the expected value. It repeats no value of the file, because the log and every reader of a
// daemon see the text, and the file may hold passwords or be a symbolic link to a file that they
// may not read. DetailedErrorText, which adds the value and the line, is for the terminal of the
// operator who names the file.
type Error struct {
	File         string // the name that the caller used
	Line, Column int    // position of the value, counted from 1; 0: the file lacks the field
	Field        string // path of the field, as in politeness.delay; empty: the file as a whole
	problem      string // continues the sentence after Field; quotes all values of the file
	excerpt      string // the line, and a mark below the column; empty: the position is unknown
}

// Error describes the error without the values of the file.
func (e *Error) Error() string { return e.location() + plaintext.HideQuoted(e.problem) }

// unredactedText describes the error with the value, which it shortens, and the line.
func (e *Error) unredactedText() string {
	return e.location() + plaintext.ReplaceControlChars(plaintext.TruncateQuotedValues(e.problem)) + e.excerpt
}

// location returns the position and the field of the error. A field's path can contain names of
// headers and hosts, which come from the file.
func (e *Error) location() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	return at + ": " + plaintext.ReplaceControlChars(plaintext.Truncate(e.Field))
}

// DetailedErrorText returns the text of err for the operator's terminal: for an Error, with the
// value and an excerpt of the line. It shortens long values. For nil it returns "".
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

// A FieldProblem is a field with an invalid value. Problem continues the sentence that FieldPath
// begins; it contains values of the file only in quotes, as %q writes them.
type FieldProblem struct{ FieldPath, Problem string }

// errorAt returns an error at a position of the file. An empty field stands for the file as a whole.
// problem must contain values of the file only in quotes.
func (d *File) errorAt(at textPosition, field, problem string) error {
	return &Error{d.file, at.line, at.column, field, problem, d.excerptAt(at)}
}

// FieldError returns the error for a problem, with the source of the field's value: a *usage.Error
// that names the command-line argument, or an *Error with the position in the file.
func (d *File) FieldError(f FieldProblem) error {
	// A list item or a nested field may come from its parent: look from the field outwards.
	for path := f.FieldPath; path != ""; path = parentFieldPath(path) {
		if setBy, ok := d.CommandLineArgByField[path]; ok {
			return usage.Errorf("%s%s", setBy, plaintext.TruncateQuotedValues(f.Problem))
		}
		if at, ok := d.positions[path]; ok {
			return d.errorAt(at, f.FieldPath, f.Problem)
		}
	}
	// Neither the command line nor the file has the field.
	if d.file != "" {
		return d.errorAt(textPosition{}, f.FieldPath, f.Problem)
	}
	return usage.Errorf("%s", cmp.Or(strings.TrimPrefix(plaintext.TruncateQuotedValues(f.Problem), ": "), f.FieldPath))
}

// maxExcerptWidth is how many characters of a line an error shows.
const maxExcerptWidth = 160

// excerptAroundColumn returns the part of line that an error shows, and the place of column in that
// part. Tabs stay tabs.
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

// credentialsPattern matches the user name and password in a URL.
var credentialsPattern = regexp.MustCompile(`//[^/\s@]*@`)

// maskCredentials replaces a match of credentialsPattern with stars of the same width, so that the
// column of an error stays the same.
func maskCredentials(s string) string {
	return "//" + strings.Repeat("*", utf8.RuneCountInString(s)-3) + "@"
}

// caretIndent returns the blanks that put a mark under a column of line. Tabs stay tabs, so that the
// mark is in its place at every tab width.
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

// excerptAt returns the line at a position, with a mark below its column, for the terminal. It
// replaces control characters, because another user may have written the file.
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
