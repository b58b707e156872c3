package ledger

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A segment is a file of records, plain or compressed.
type segment struct {
	name         string // without its directory
	serial       int    // its number, from 1
	isCompressed bool
	fileHash     hash.Hash // if not nil, forEachLine writes the bytes of the file to it
}

// segmentNamePattern matches the names of segments: number, and suffix if compressed.
var segmentNamePattern = regexp.MustCompile(`^ledger-(\d{6,9})\.jsonl(\.zst)?$`)

// plainSegmentName returns the name of a segment that is not compressed.
func plainSegmentName(serial int) string { return fmt.Sprintf("ledger-%06d.jsonl", serial) }

const compressedSuffix = ".zst"

// listSegments returns the segments in a directory, oldest first. If a crash has left a segment both plain
// and compressed, it returns one of them: the plain one if the segment is the last, and otherwise the
// compressed one.
func listSegments(dir string) ([]segment, error) {
	// Check for a directory first: opening a pipe may block forever.
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("ledger: %s is not a directory", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	var all []segment
	for _, e := range entries {
		if m := segmentNamePattern.FindStringSubmatch(e.Name()); m != nil && !e.IsDir() {
			serial, _ := strconv.Atoi(m[1]) // at most nine digits
			all = append(all, segment{name: e.Name(), serial: serial, isCompressed: m[2] != ""})
		}
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.serial, b.serial), cmp.Compare(a.name, b.name))
	})
	// In this order the plain file of a segment comes directly before the compressed one.
	var current []segment
	for i, s := range all {
		last := s.serial == all[len(all)-1].serial
		switch {
		case !s.isCompressed && i+1 < len(all) && all[i+1].serial == s.serial && !last: // the compressed file counts
		case s.isCompressed && i > 0 && all[i-1].serial == s.serial && last: // the plain file counts
		default:
			current = append(current, s)
		}
	}
	return current, nil
}

// openDecompressed returns a reader of the records of a segment, decompressed.
func (s segment) openDecompressed(dir string) (io.ReadCloser, error) {
	f, err := openRegularFile(dir, s.name)
	if errors.Is(err, fs.ErrNotExist) && !s.isCompressed { // a Ledger has compressed it since listSegments
		return segment{s.name + compressedSuffix, s.serial, true, s.fileHash}.openDecompressed(dir)
	}
	if err != nil {
		return nil, err
	}
	var input io.Reader = f
	if s.fileHash != nil {
		input = io.TeeReader(f, s.fileHash)
	}
	if !s.isCompressed {
		return segmentReader{input, f.Close}, nil
	}
	z, err := zstd.NewReader(input, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return segmentReader{z, func() error {
		z.Close()
		return f.Close()
	}}, nil
}

// A segmentReader reads the bytes of a segment, decompressed.
type segmentReader struct {
	io.Reader
	close func() error
}

// Close closes the file and the decompressor.
func (r segmentReader) Close() error { return r.close() }

// errLineTooLong is returned for a line that is longer than any record.
var errLineTooLong = fmt.Errorf("is longer than %d bytes", maxLineBytes)

// forEachLine calls yield for each line of a segment, with its number from 1, and with its line end if it
// has one, until yield returns an error, which it returns. The slice is valid during the call only.
func (s segment) forEachLine(dir string, yield func(number int, line []byte) error) (err error) {
	input, err := s.openDecompressed(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, input.Close()) }()
	r := bufio.NewReaderSize(input, 64<<10)
	for number := 1; ; number++ {
		line, err := readLine(r)
		if errors.Is(err, errLineTooLong) {
			return fmt.Errorf("line %d %w", number, err)
		}
		if len(line) > 0 { // the last line may lack its end: then err is io.EOF
			if err := yield(number, line); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// readLine returns the next line, with its line end if it has one. The slice is valid until the next
// call.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	for joined := []byte(nil); errors.Is(err, bufio.ErrBufferFull); {
		if joined = append(joined, line...); len(joined) > maxLineBytes {
			return nil, errLineTooLong
		}
		if line, err = r.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return append(joined, line...), err
		}
	}
	return line, err
}

// hashFile returns the SHA-256 of a file, in hex.
func hashFile(name string) (hash string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// compressSegment compresses a segment into a second file, and returns the name and the SHA-256 of that.
// When it returns, the file is on the disk. It may be called again after it has failed.
func compressSegment(dir string, serial int, mode fs.FileMode) (name, hash string, err error) {
	name = plainSegmentName(serial) + compressedSuffix
	temporary := filepath.Join(dir, name+".new")
	// Compress into a temporary file, which gets its name when it is on the disk.
	in, err := os.Open(filepath.Join(dir, plainSegmentName(serial)))
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, disk.PrivateMode)
	if err != nil {
		return "", "", err
	}
	h := sha256.New()
	err = errors.Join(disk.SetMode(out, mode), compressZstd(io.MultiWriter(out, h), in))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return "", "", err
	}
	if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
		return "", "", err
	}
	return name, hex.EncodeToString(h.Sum(nil)), disk.SyncDir(dir)
}

// compressZstd writes all of in to out, compressed.
func compressZstd(out io.Writer, in io.Reader) error {
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	_, err = io.Copy(z, in)
	return errors.Join(err, z.Close())
}

// removeIfExists removes a file. A missing file is not an error.
func removeIfExists(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// openRegularFile opens a regular file below a directory for reading. It returns an error for anything else,
// without waiting for it, and for a symbolic link that leads out of the directory, because a stranger may
// have written the directory.
func openRegularFile(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// A device is not even opened, because that may have an effect.
	if err := requireRegularFile(root.Stat(name)); err != nil {
		return nil, err
	}
	// The file may have been replaced since: with O_NONBLOCK the open of a pipe does
	// not block.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := requireRegularFile(f.Stat()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// requireRegularFile returns err, or an error unless info describes a regular file.
func requireRegularFile(info fs.FileInfo, err error) error {
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeNamedPipe != 0:
		return errors.New("it is a named pipe and not a regular file")
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	}
	return nil
}

// readRegularFile returns the content of a file that openRegularFile opens. It returns an error if the file
// has more than limit bytes.
func readRegularFile(dir, name string, limit int64) (text []byte, err error) {
	f, err := openRegularFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return text, err
}
