package project

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// An Error is an error in a project file. Its text names the file, the line, the column, the field,
// and the expected value. It repeats no value of the file, because the log and every reader of a
// daemon see the text, and the file may hold passwords or be a symbolic link to a file that they
// may not read. It repeats an unknown field whose name is like that of a field. DetailedErrorText, which
// adds the value and the line, is for the terminal of the operator who names the file.
type Error struct {
	File         string // the name that the caller used
	Line, Column int    // position of the value or, if it is missing, of its parent, from 1; 0: unknown
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

// An ErrorList is two or more errors in a project, in the order of the file. Unwrap returns them:
// each is an *Error, or a *usage.Error that names an argument of the command line.
type ErrorList struct {
	errs    []error
	omitted int // errors after the first maxListedErrors
}

// maxListedErrors bounds the errors that an ErrorList describes.
const maxListedErrors = 20

// Unwrap returns the errors, at most the first 20.
func (l *ErrorList) Unwrap() []error { return l.errs }

// Error describes each error on a line of its own, without the values of the file.
func (l *ErrorList) Error() string { return l.text(error.Error) }

// text describes the errors by describe, each after a line end.
func (l *ErrorList) text(describe func(error) string) string {
	text := fmt.Sprintf("%d errors:", len(l.errs)+l.omitted)
	for _, err := range l.errs {
		text += "\n" + describe(err)
	}
	if l.omitted > 0 {
		text += fmt.Sprintf("\nand %d more", l.omitted)
	}
	return text
}

// DetailedErrorText returns the text of err for the operator's terminal: for an Error, with the
// value and an excerpt of the line; for an ErrorList, with each error on lines of its own. It shortens
// long values. For nil it returns "".
func DetailedErrorText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if l := (*ErrorList)(nil); errors.As(err, &l) {
		return strings.Replace(text, l.Error(), l.text(DetailedErrorText), 1)
	}
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
func (d *File) FieldError(f FieldProblem) error { return d.locatedError(d.locate(f)) }

// A locatedProblem is a problem with the source of its field.
type locatedProblem struct {
	FieldProblem
	setBy string       // the argument of the command line that sets the field; "": none
	at    textPosition // otherwise: position of the field, or of the parent of a missing field

	// isMissing says that neither the file nor the command line has the field or a field around it; at
	// is the first field of the file then.
	isMissing bool
}

// locate returns f with the source of its field.
func (d *File) locate(f FieldProblem) locatedProblem {
	// A list item or a nested field may come from its parent: look from the field outwards.
	for path := f.FieldPath; path != ""; path = parentFieldPath(path) {
		if setBy, ok := d.CommandLineArgByField[path]; ok {
			return locatedProblem{FieldProblem: f, setBy: setBy}
		}
		if at, ok := d.positions[path]; ok {
			return locatedProblem{FieldProblem: f, at: at}
		}
	}
	return locatedProblem{FieldProblem: f, at: d.firstField, isMissing: true}
}

// locatedError returns the error for p.
func (d *File) locatedError(p locatedProblem) error {
	switch {
	case p.setBy != "":
		return usage.Errorf("%s%s", p.setBy, plaintext.TruncateQuotedValues(p.Problem))
	case !p.isMissing:
		return d.errorAt(p.at, p.FieldPath, p.Problem)
	case d.file != "": // without an excerpt, because the first field has nothing to do with it
		return &Error{d.file, p.at.line, p.at.column, p.FieldPath, p.Problem, ""}
	}
	return usage.Errorf("%s", cmp.Or(strings.TrimPrefix(plaintext.TruncateQuotedValues(p.Problem), ": "), p.FieldPath))
}

// addDecodeError adds the error of the field at path, whose value is not in d.Project then. The
// FieldPath of p is empty if errors must not begin with the path.
func (d *File) addDecodeError(at textPosition, path string, p FieldProblem) {
	d.markUndecoded(path)
	if len(d.decodeErrors) < maxListedErrors {
		d.decodeErrors = append(d.decodeErrors, locatedProblem{FieldProblem: p, at: at})
	} else {
		d.omittedDecodeErrors++
	}
}

// markUndecoded records that the field at path has no valid value, although the file seems to set it.
func (d *File) markUndecoded(path string) {
	d.undecoded[path] = true
	for path != "" {
		path = parentFieldPath(path)
		d.undecodedBelow[path] = true
	}
}

// followsFromDecodeError reports whether a problem of the field at path may be due to an error of the
// same field, of one around it, or of one in it, that the file already has.
func (d *File) followsFromDecodeError(path string) bool {
	if d.undecodedBelow[path] || d.undecoded[""] || path == "seeds" && d.undecoded["seed_files"] {
		return true
	}
	for ; path != ""; path = parentFieldPath(path) {
		// The command line puts its own items before those of the file, which have other indices then.
		if d.undecoded[path] || d.undecodedBelow[path] && d.CommandLineArgByField[path] != "" {
			return true
		}
	}
	return false
}

// errorFor returns the error for the decode errors and the problems: nil, the only one, or an
// *ErrorList. It leaves out problems that follow from a decode error, and keeps one for each field.
func (d *File) errorFor(problems []FieldProblem) error {
	all := slices.Clone(d.decodeErrors)
	seen := map[string]bool{}
	for _, p := range problems {
		if !seen[p.FieldPath] && !d.followsFromDecodeError(p.FieldPath) {
			seen[p.FieldPath] = true
			all = append(all, d.locate(p))
		}
	}
	// Arguments of the command line have position 0 and are first.
	slices.SortStableFunc(all, func(a, b locatedProblem) int {
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	list := &ErrorList{omitted: d.omittedDecodeErrors + max(0, len(all)-maxListedErrors)}
	for _, p := range all[:min(len(all), maxListedErrors)] {
		list.errs = append(list.errs, d.locatedError(p))
	}
	switch len(list.errs) {
	case 0:
		return nil
	case 1:
		return list.errs[0]
	}
	return list
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
