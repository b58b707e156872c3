package project

import (
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A File is a project in the making: it knows where each value came from, so
// that a mistake can be shown in its place.
type File struct {
	Project
	file                  string
	Text                  string
	positions             map[string]textPosition // of the fields that the file has
	CommandLineArgByField map[string]string       // of the fields that the command line set: by what
}

// A textPosition is a line and a column of the project file, counted from 1.
type textPosition struct{ line, column int }

// A FieldProblem is a field that cannot stand as it is, and why: what reads well after
// the field's name. It has the values of the file in quotes only, as %q writes them.
type FieldProblem struct{ FieldPath, Problem string }

// MaxFileSize bounds a project file. Longer lists of seeds belong in files
// of their own.
const MaxFileSize = 1 << 20

// NewFile returns a draft of the defaults.
func NewFile() *File {
	return &File{Project: Default(), positions: map[string]textPosition{}, CommandLineArgByField: map[string]string{}}
}

// ReadFile reads a project file over the defaults.
func ReadFile(file string) (*File, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage.Errorf("cannot read the project file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, usage.Errorf("cannot read the project file: %w", err)
	}
	return ParseFile(file, text)
}

// ParseFile reads the text of a project file over the defaults. file names it in
// errors.
func ParseFile(file string, text []byte) (*File, error) {
	if len(text) > MaxFileSize {
		return nil, usage.Errorf("%s is longer than 1 MiB; put long lists of seeds into seed_files", file)
	}
	d := NewFile()
	d.file, d.Text = file, strings.TrimPrefix(string(text), plaintext.ByteOrderMark)
	if err := d.decode(); err != nil {
		return nil, err
	}
	return d, nil
}

// Read reads and checks a project file.
func Read(file string) (Project, error) {
	d, err := ReadFile(file)
	if err != nil {
		return Project{}, err
	}
	if err := d.Check(); err != nil {
		return Project{}, err
	}
	return d.Project, nil
}

// SetFieldFromCommandLine gives a field the values that the command line has for it; setBy names what
// on the command line did.
func (d *File) SetFieldFromCommandLine(field, setBy string, values ...string) error {
	v := d.fieldAt(field)
	d.CommandLineArgByField[field] = setBy
	if v.Kind() == reflect.Slice {
		v.Set(reflect.ValueOf(values))
		return nil
	}
	return setScalarFromText(v, values[len(values)-1])
}

// Check reports the first field that is impossible.
func (d *File) Check() error {
	if f := checkProject(&d.Project); f != nil {
		return d.FieldError(*f)
	}
	return nil
}

// parentFieldPath returns the path of the room that a field is in, "" for the outermost.
func parentFieldPath(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
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
