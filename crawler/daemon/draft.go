package daemon

import (
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A draft is a project in the making: it knows where each value came from, so
// that a mistake can be shown in its place.
type draft struct {
	Project
	file  string
	text  string
	at    map[string]place  // of the fields that the file has
	flags map[string]string // of the fields that the command line set: by what
}

// A place is a line and a column of the project file, counted from 1.
type place struct{ line, column int }

// A fault is a field that cannot stand as it is, and why: what reads well after
// the field's name. It has the values of the file in quotes only, as %q writes them.
type fault struct{ field, problem string }

// maxProjectFile bounds a project file. Longer lists of seeds belong in files
// of their own.
const maxProjectFile = 1 << 20

// newDraft returns a draft of the defaults.
func newDraft() *draft {
	return &draft{Project: DefaultProject(), at: map[string]place{}, flags: map[string]string{}}
}

// readDraft reads a project file over the defaults.
func readDraft(file string) (*draft, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage("cannot read the project file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProjectFile+1))
	if err != nil {
		return nil, usage("cannot read the project file: %w", err)
	}
	return parseDraft(file, text)
}

// parseDraft reads the text of a project file over the defaults. file names it in
// errors.
func parseDraft(file string, text []byte) (*draft, error) {
	if len(text) > maxProjectFile {
		return nil, usage("%s is longer than 1 MiB; put long lists of seeds into seed_files", file)
	}
	d := newDraft()
	d.file, d.text = file, strings.TrimPrefix(string(text), byteOrderMark)
	if err := d.decode(); err != nil {
		return nil, err
	}
	return d, nil
}

// ReadProject reads and checks a project file.
func ReadProject(file string) (Project, error) {
	d, err := readDraft(file)
	if err != nil {
		return Project{}, err
	}
	if err := d.check(); err != nil {
		return Project{}, err
	}
	return d.Project, nil
}

// set gives a field the values that the command line has for it; by names what
// on the command line did.
func (d *draft) set(field, by string, values ...string) error {
	v := d.field(field)
	d.flags[field] = by
	if v.Kind() == reflect.Slice {
		v.Set(reflect.ValueOf(values))
		return nil
	}
	return setScalar(v, values[len(values)-1])
}

// check reports the first field that is impossible.
func (d *draft) check() error {
	if f := impossible(&d.Project); f != nil {
		return d.blame(*f)
	}
	return nil
}

// parent returns the path of the room that a field is in, "" for the outermost.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// widest is how many characters of a line an error shows.
const widest = 160

// excerpt returns what an error shows of a line, and which column of it is the one that
// is meant. Tabs stay tabs.
func excerpt(line string, column int) (string, int) {
	text := []rune(line)
	if from := column - widest/2; len(text) > widest && from > 0 {
		text, column = append([]rune("…"), text[min(from, len(text)):]...), column-from+1
	}
	if len(text) > widest {
		text = append(text[:widest], '…')
	}
	cells := strings.Split(string(text), "\t")
	for i := range cells {
		cells[i] = plain(cells[i])
	}
	return strings.Join(cells, "\t"), column
}

// credentials are what a URL has before its host; stars hide them, and keeps
// the place of what follows.
var credentials = regexp.MustCompile(`//[^/\s@]*@`)

func stars(s string) string { return "//" + strings.Repeat("*", utf8.RuneCountInString(s)-3) + "@" }

// indent returns the blanks that put what follows under a column of line: tabs
// stay tabs, so that it is under it however wide they are shown.
func indent(line string, column int) string {
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
