package warc_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A program archives a visit, and reads the responses in the archive as net/http reads them from a server.
func Example() {
	dir, err := os.MkdirTemp("", "warc-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	archive, err := warc.OpenArchiveWriter(warc.Config{Dir: dir, FilePrefix: "books"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = archive.WriteVisit(&warc.Visit{
		URL: "https://example.com/", Date: time.Now(),
		Exchange: &decorum.RawExchange{
			RawRequest:  []byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
			RawResponse: []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
		},
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		log.Fatal(err)
	}

	names, err := filepath.Glob(filepath.Join(dir, "books-*.warc.gz"))
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		if err := printResponses(name); err != nil {
			log.Fatal(err)
		}
	}
	// Output: https://example.com/ 200 "hello"
}

// printResponses prints the responses in a file.
func printResponses(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := warc.NewReader(f); ; {
		record, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if record.Type() != warc.TypeResponse {
			continue
		}
		response, err := http.ReadResponse(bufio.NewReader(record.Block), nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		fmt.Printf("%s %d %q\n", record.Header.Get("WARC-Target-URI"), response.StatusCode, body)
	}
}
