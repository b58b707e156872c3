package main

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// pack returns the regular files below dir as a tar archive.
func pack(dir string) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600,
			Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = t.Write(text)
		return err
	})
	if err == nil {
		err = t.Close()
	}
	return b.Bytes(), err
}

// writeCompressed writes a file, compressed with zstd.
func writeCompressed(file string, text []byte) error {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	return os.WriteFile(file, z.EncodeAll(text, nil), 0o600)
}
