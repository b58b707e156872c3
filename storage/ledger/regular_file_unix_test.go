//go:build unix

package ledger

import (
	"bytes"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A hostileFile replaces a file of a ledger by something that blocks its reader or has no end. want is part
// of the finding.
type hostileFile struct {
	name, want string
	replace    func(t *testing.T, file string)
}

var hostileFiles = []hostileFile{
	{"a named pipe", "it is a named pipe and not a regular file", func(t *testing.T, file string) {
		if err := syscall.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
	}},
	{"a device", "path escapes from parent", func(t *testing.T, file string) { symlinkTo(t, "/dev/zero", file) }},
	{"a file elsewhere", "path escapes from parent", func(t *testing.T, file string) {
		symlinkTo(t, "/etc/hosts", file)
	}},
	{"a socket", "it is not a regular file (S---------)", func(t *testing.T, file string) {
		t.Chdir(filepath.Dir(file)) // the name of a socket has at most 107 bytes
		l, err := net.Listen("unix", filepath.Base(file))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}},
	{"a directory by a link", "it is not a regular file (d---------)", func(t *testing.T, file string) {
		if err := os.Mkdir(file+".d", 0o700); err != nil {
			t.Fatal(err)
		}
		symlinkTo(t, filepath.Base(file)+".d", file)
	}},
	{"a sparse file", "", func(t *testing.T, file string) {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, 50<<30); err != nil {
			t.Fatal(err)
		}
	}},
}

func symlinkTo(t *testing.T, to, file string) {
	if err := os.Symlink(to, file); err != nil {
		t.Fatal(err)
	}
}

// A file that is not a regular file of the directory is a finding, and so is a file without end. Verify does
// not wait for them, and does not read them into memory.
func TestVerifyHostileFiles(t *testing.T) {
	home := t.TempDir()
	writeSample(t, home, 2)
	files := readFiles(t, home)
	for _, part := range []string{".jsonl.zst", ".jsonl", ".txt"} {
		names := slices.Sorted(maps.Keys(files))
		i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, part) })
		for _, h := range hostileFiles {
			t.Run(h.name+" as "+part, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(home)); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, names[i])
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				h.replace(t, file)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				report := verifySigned(t, dir)
				runtime.ReadMemStats(&after)
				if !slices.ContainsFunc(report.Findings, func(f Finding) bool {
					return strings.HasSuffix(f.File, filepath.Base(file)) && strings.Contains(f.Message, h.want)
				}) {
					t.Errorf("found %v; want %q of %s", report.Findings, h.want, file)
				}
				if cost := after.TotalAlloc - before.TotalAlloc; cost > 8*maxLineBytes {
					t.Errorf("%d MB were allocated", cost>>20)
				}
				for _, err := range Records(dir) { // returns, too
					_ = err
				}
			})
		}
	}
}

// Verify returns an error, without waiting, if the directory is a named pipe.
func TestVerifyNoDirectory(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "ledger")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(pipe, VerifyOptions{}); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("error %v", err)
	}
}

// Verify stops reading a small file that decompresses to endless lines, none of them a record.
func TestVerifyStops(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Repeat([]byte("\n"), 1<<20)
	for range 64 {
		if _, err := z.Write(lines); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger-000001.jsonl.zst"), packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if report := verifySigned(t, dir); !report.StoppedAtFaultLimit ||
		report.UnlistedFindings != maxUnlistedFindings+1 && report.UnlistedFindings != maxUnlistedFindings+2 {
		t.Errorf("%d unlisted findings, stopped: %v; want it stopped after %d", report.UnlistedFindings,
			report.StoppedAtFaultLimit, maxUnlistedFindings)
	}
}
