package project

import (
	"io"
	"os"
	"reflect"
	"strings"

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
