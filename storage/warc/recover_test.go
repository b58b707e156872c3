package warc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writerDirEnv is an environment variable. If it is set, the test binary writes to the archive in that
// directory until it is killed.
const writerDirEnv = "DECORUM_TEST_WARC_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDirEnv); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled writes visits of all sizes, and prints the URL of each after WriteVisit has returned.
func writeUntilKilled(dir string) {
	a, err := OpenArchiveWriter(Config{Dir: dir, MaxFileSize: 1 << 20})
	for i := 0; err == nil; i++ {
		body := make([]byte, rand.N(200<<10))
		for j := range body {
			body[j] = byte(rand.Uint32())
		}
		v := newVisit(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		v.URL = fmt.Sprintf("https://example.com/%d-%d", os.Getpid(), i)
		if _, err = a.WriteVisit(v); err == nil {
			fmt.Println(v.URL)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A writer that is killed leaves files that can be read, with every visit for which WriteVisit had returned.
func TestKilledWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills separate processes")
	}
	dir := t.TempDir()
	var written []string
	for range 8 {
		written = append(written, killWriter(t, dir)...)
	}
	recovered := 0
	a := openArchive(t, Config{Dir: dir, OnRecovered: func(string, int64) { recovered++ }})
	if recovered != 1 {
		t.Errorf("%d files were open at the end, want that of the last writer", recovered)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	archived := map[string]bool{}
	for _, name := range fileNames(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range readRecords(t, bytes.NewReader(b)) {
			if r.Type() == TypeRequest { // the last record of a visit
				archived[r.Header.Get("WARC-Target-URI")] = true
			}
		}
	}
	for _, url := range written {
		if !archived[url] {
			t.Errorf("%s was written, and is not in the archive", url)
		}
	}
	t.Logf("%d visits by 8 writers", len(written))
}

// killWriter starts a writer, kills it, and returns the URLs that it has printed.
func killWriter(t *testing.T, dir string) (written []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), writerDirEnv+"="+dir)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if written = append(written, lines.Text()); len(written) == 10 {
			go func() { // kill it after a while, in the middle of a write
				time.Sleep(rand.N(20 * time.Millisecond))
				_ = c.Process.Kill()
			}()
		}
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the writer ended with %v\n%s", err, &stderr)
	}
	return written
}

// Wherever a crash cuts a file, all records before the cut are in the recovered file.
func TestRecovery(t *testing.T) {
	a := openArchive(t, Config{})
	var ends []int64 // of visits
	for range 3 {
		if _, err := a.WriteVisit(newVisit("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, a.file.size)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	name := fileNames(t, a.cfg.Dir)[0]
	original, err := os.ReadFile(filepath.Join(a.cfg.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range cutOffsets(ends, len(original)) {
		for _, padding := range []string{"", strings.Repeat("\x00", 100)} { // file systems may leave zeros
			minRecords := 0
			for _, end := range ends {
				if int64(cut) >= end {
					minRecords += 2
				}
			}
			checkRecovery(t, name, append(original[:cut:cut], padding...), minRecords)
		}
	}
}

// cutOffsets returns offsets at which to cut a file: every 41 bytes, and around the ends of visits.
func cutOffsets(ends []int64, size int) []int {
	var at []int
	for cut := 0; cut <= size; cut += 41 {
		at = append(at, cut)
	}
	for _, end := range ends {
		at = append(at, int(end)-1, int(end), min(int(end)+1, size))
	}
	return at
}

// checkRecovery recovers a torn file, and checks what is left and what was cut.
func checkRecovery(t *testing.T, name string, torn []byte, minRecords int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name+".open"), torn, 0o644); err != nil {
		t.Fatal(err)
	}
	var cut int64
	a := openArchive(t, Config{Dir: dir, OnRecovered: func(_ string, n int64) { cut = n }})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	names := fileNames(t, dir)
	if len(names) == 0 {
		if minRecords > 0 || cut != int64(len(torn)) {
			t.Errorf("a file of %d bytes with at least %d records was removed", len(torn), minRecords)
		}
		return
	}
	recovered, err := os.ReadFile(filepath.Join(dir, names[0]))
	if err != nil || names[0] != name || len(names) > 1 {
		t.Fatalf("%q, %v; want %s alone", names, err, name)
	}
	if records := len(readRecords(t, bytes.NewReader(recovered))) - 1; records < minRecords {
		t.Errorf("of %d bytes %d records are left, want at least %d", len(torn), records, minRecords)
	}
	if int64(len(torn)-len(recovered)) != cut || !bytes.HasPrefix(torn, recovered) {
		t.Errorf("%d of %d bytes are left, %d were cut", len(recovered), len(torn), cut)
	}
}

// Recovery does not overwrite a file that has the final name already.
func TestRecoveryWritesOverNothing(t *testing.T) {
	a := openArchive(t, Config{})
	if _, err := a.WriteVisit(newVisit("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file.finalPath, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if other, err := OpenArchiveWriter(Config{Dir: a.cfg.Dir}); err == nil {
		other.Close()
		t.Error("OpenArchiveWriter succeeds although a file has the final name")
	}
	if b, err := os.ReadFile(a.file.finalPath); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

// Records that were on the disk must be intact; the records after them are cut from the first damaged one on.
func TestRecoveryOfDurableRecords(t *testing.T) {
	a := openArchive(t, Config{})
	for i := range 6 {
		if _, err := a.WriteVisit(newVisit("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if got := a.DurableExtent(); got.Size != 0 {
				t.Errorf("%+v is on the disk before Sync", got)
			}
			if err := a.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	extent := a.DurableExtent()
	text, err := os.ReadFile(a.file.Name())
	if err != nil || extent.Size == 0 || extent.Size >= int64(len(text)) {
		t.Fatalf("%+v of %d bytes (%v)", extent, len(text), err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		garbled int64
		want    string
	}{{"behind", extent.Size + 100, ""}, {"before", extent.Size - 100, "bytes, and"}} {
		torn := bytes.Clone(text)
		clear(torn[tt.garbled : tt.garbled+50])
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, extent.FileName+".open"), torn, 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := OpenArchiveWriter(Config{Dir: dir, LastDurableExtent: extent})
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(filepath.Join(dir, extent.FileName))
		if err != nil || info.Size() < extent.Size || info.Size() > tt.garbled {
			t.Errorf("%s: %v bytes are left (%v), want at least %d", tt.name, info, err, extent.Size)
		}
	}
}
