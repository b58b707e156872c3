package project

import (
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A File is a Project that remembers the source of each value, so that an error can name the line
// and column, or the command-line argument, of an invalid one. The zero File is invalid: use
// NewFile, ReadFile or ParseFile.
type File struct {
	Project
	file                  string                  // name in errors; empty: no file
	Text                  string                  // the file, without its byte order mark
	positions             map[string]textPosition // of the fields in the file, by path
	CommandLineArgByField map[string]string       // the argument, such as --delay, of each field set by one

	firstField          textPosition     // position of the first field of the file
	decodeErrors        []locatedProblem // of fields whose values could not be decoded, the first maxListedErrors
	omittedDecodeErrors int              // further ones
	undecoded           map[string]bool  // paths of all these fields
	undecodedBelow      map[string]bool  // paths of the fields around them
}

// A textPosition is a line and a column of the project file, counted from 1.
type textPosition struct{ line, column int }

// MaxFileSize is the maximum size of a project file, in bytes. Longer lists of seeds belong in
// seed_files.
const MaxFileSize = 1 << 20

// NewFile returns a File with the default of every field.
func NewFile() *File {
	return &File{Project: Default(), positions: map[string]textPosition{}, CommandLineArgByField: map[string]string{},
		undecoded: map[string]bool{}, undecodedBelow: map[string]bool{}}
}

// ReadFile reads a project file. Fields that the file leaves out keep their defaults. ReadFile
// checks the syntax and the types; Check checks the values. Errors are an *Error, an *ErrorList or a
// *usage.Error.
func ReadFile(file string) (*File, error) {
	d, err := ReadUnchecked(file)
	return d.unlessInvalid(err)
}

// ReadUnchecked is ReadFile for callers that always call Check: it leaves the errors of fields to
// Check, which returns all errors of the file together.
func ReadUnchecked(file string) (*File, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage.Errorf("cannot read the project file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, usage.Errorf("cannot read the project file: %w", err)
	}
	return ParseUnchecked(file, text)
}

// ParseFile is ReadFile for the text of a project file. file is its name in errors. A text of more
// than MaxFileSize bytes is an error.
func ParseFile(file string, text []byte) (*File, error) {
	d, err := ParseUnchecked(file, text)
	return d.unlessInvalid(err)
}

// unlessInvalid returns d, or an error if err is one or a field of d could not be decoded.
func (d *File) unlessInvalid(err error) (*File, error) {
	if err == nil {
		err = d.errorFor(nil)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// ParseUnchecked is ReadUnchecked for the text of a project file, as ParseFile takes it.
func ParseUnchecked(file string, text []byte) (*File, error) {
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

// Read reads a project file, checks its values and resolves its paths (File.Resolve). Errors are an
// *Error, an *ErrorList or a *usage.Error.
func Read(file string) (Project, error) {
	d, err := ReadUnchecked(file)
	if err != nil {
		return Project{}, err
	}
	p, err := d.Resolve()
	if err != nil {
		return Project{}, err
	}
	return p, nil
}

// SetFieldFromCommandLine sets a list field to values, and any other field to the last of values.
// field is its path in the file. setBy is the command-line argument that errors name.
func (d *File) SetFieldFromCommandLine(field, setBy string, values ...string) error {
	v := d.fieldAt(field)
	d.CommandLineArgByField[field] = setBy
	if v.Kind() == reflect.Slice {
		v.Set(reflect.ValueOf(values))
		return nil
	}
	return setScalarFromText(v, values[len(values)-1])
}

// Check returns the errors of the fields with invalid values: nil, an *Error or *usage.Error, or an
// *ErrorList. further are problems that the caller has found; Check skips nil ones.
func (d *File) Check(further ...*FieldProblem) error {
	var problems []FieldProblem
	for _, f := range further {
		if f != nil {
			problems = append(problems, *f)
		}
	}
	return d.errorFor(append(problems, checkProject(&d.Project)...))
}

// parentFieldPath returns the path of the field that contains a field or list item, or "" for a
// top-level field.
func parentFieldPath(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
