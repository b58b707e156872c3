package sinks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

var rotatedNamePattern = regexp.MustCompile(`^out-2\d{7}T\d{6}Z-(\d{6})\.jsonl$`)

// Every line of concurrent writers is in exactly one file, while other goroutines sync. The rotated files
// are full and numbered without a gap, across restarts too.
func TestOutputIsRotated(t *testing.T) {
	t.Parallel()
	const limit, each, writers, runs = 1000, 100, 4, 3
	name := filepath.Join(t.TempDir(), "out.jsonl")
	var want []string
	for run := range runs {
		o, err := OpenJSONLRecorder(Config{JSONLPath: name, JSONLMaxFileBytes: int64(limit),
			FileMode: datadir.PrivateFileMode, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for w := range writers {
			for i := range each {
				want = append(want, fmt.Sprintf("%d %d %d %s\n", run, w, i, strings.Repeat("x", 7*i%150)))
			}
			mine := want[len(want)-each:]
			wg.Go(func() {
				for i, line := range mine {
					err := o.writeLine(t.Context(), []byte(line))
					if i%10 == 0 {
						err = errors.Join(err, o.Sync())
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(o.Sync(), o.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got := testfile.RotatedLines(t, name, limit)
	var read strings.Builder
	if err := ForEachJSONLFile(name, func(r io.Reader) error { _, err := io.Copy(&read, r); return err }); err != nil {
		t.Fatal(err)
	}
	if read.String() != strings.Join(got, "") {
		t.Error("the files are not read in their order")
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d lines in all files, want %d, each once", len(got), len(want))
	}
	full, err := RotatedJSONLFiles(name)
	if err != nil || len(full) < 50 {
		t.Errorf("%d full files (%v), want more", len(full), err)
	}
	for i, f := range full {
		if m := rotatedNamePattern.FindStringSubmatch(filepath.Base(f.Path)); m == nil ||
			m[1] != fmt.Sprintf("%06d", i+1) {
			t.Errorf("the name of file %d is %s", i+1, f.Path)
		}
	}
}

// After a crash at any point of a rotation, or a disk that fails in between, the next run continues the
// output.
func TestCrashBetweenFiles(t *testing.T) {
	full := "out-20261122T013501Z-000041.jsonl"
	for _, tt := range []struct {
		name  string
		files map[string]string // what the crash left, by name
		want  string            // all lines after two more were written
		whole int               // the number of rotated files then
	}{
		{"before the name", map[string]string{"out.jsonl": "first\n"}, "first\nsecond\nthird\n", 2},
		{"after the name", map[string]string{full: "first\n"}, "first\nsecond\nthird\n", 2},
		{"in the first line", map[string]string{full: "first\n", "out.jsonl": recordPrefix},
			"first\nsecond\nthird\n", 2},
		{"after the first line", map[string]string{full: "first\n", "out.jsonl": "x\n"},
			"first\nx\nsecond\nthird\n", 3},
		{"files of others", map[string]string{"out-1.jsonl": "theirs\n", "out-20261122T013501Z-000041.json": "theirs\n",
			"out.jsonl": ""}, "second\nthird\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			name := filepath.Join(dir, "out.jsonl")
			o, err := OpenJSONLRecorder(Config{JSONLPath: name, JSONLMaxFileBytes: 1,
				FileMode: datadir.PrivateFileMode, Resume: true})
			if err != nil {
				t.Fatal(err)
			}
			err = errors.Join(o.writeLine(t.Context(), []byte("second\n")),
				o.writeLine(t.Context(), []byte("third\n")), o.Sync(), o.Close())
			if err != nil {
				t.Fatal(err)
			}
			var read strings.Builder
			if err := ForEachJSONLFile(name, func(r io.Reader) error {
				_, err := io.Copy(&read, r)
				return err
			}); err != nil || read.String() != tt.want {
				t.Errorf("%q (%v), want %q", &read, err, tt.want)
			}
			if got, err := RotatedJSONLFiles(name); err != nil || len(got) != tt.whole {
				t.Errorf("full files %v (%v), want %d", got, err, tt.whole)
			}
		})
	}
}

// A file that cannot be created is created later, and the rotated file keeps its name.
func TestNoRoomForAFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.jsonl")
	f, err := openJSONLFile(nil, name, 1, datadir.PrivateFileMode, datadir.OutputFileCheckpoint{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	put := func(line string) error { _, err := io.WriteString(f, line); return err }
	if err := put("first\n"); err != nil {
		t.Fatal(err)
	}
	rotated := dir + "-aside"
	if err := os.Rename(dir, rotated); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := put("second\n"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("without a directory: %v", err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Errorf("Sync between two files: %v", err)
	}
	if err := errors.Join(os.Rename(rotated, dir), put("second\n")); err != nil {
		t.Fatal(err)
	}
	if got := testfile.RotatedLines(t, name, 1); !slices.Equal(got, []string{"first\n", "second\n"}) {
		t.Errorf("lines %q", got)
	}
}

// Lines are read once, even if their file is rotated while it is read.
func TestReadWhileFilesAreClosed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	f, err := openJSONLFile(nil, name, 1, datadir.PrivateFileMode, datadir.OutputFileCheckpoint{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 3 {
		fmt.Fprintln(f, i)
	}
	last, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	fmt.Fprintln(f, 3) // rotates the file that is open for reading
	full, err := RotatedJSONLFiles(name)
	if err != nil || len(full) != 3 {
		t.Fatalf("%v, %v", full, err)
	}
	lastInfo, err := last.Stat()
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, c := range full {
		if err := readIfOtherFile(c.Path, lastInfo, func(r io.Reader) error {
			text, err := io.ReadAll(r)
			read = append(read, string(text))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(read, []string{"0\n", "1\n"}) {
		t.Errorf("%q were read, want the files that are not open already", read)
	}
}

// A file that is not regular, or that a symbolic link leads to, cannot be rotated.
func TestOnlyRegularFilesAreRotated(t *testing.T) {
	link := filepath.Join(t.TempDir(), "out.jsonl")
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{os.DevNull, link} {
		if _, err := OpenJSONLRecorder(Config{JSONLPath: name, JSONLMaxFileBytes: 1000,
			FileMode: datadir.PrivateFileMode, Resume: true}); err == nil ||
			!strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
		o, err := OpenJSONLRecorder(Config{JSONLPath: name, FileMode: datadir.PrivateFileMode, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(o.writeLine(t.Context(), []byte("x\n")), o.Sync(), o.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
