package ftpfetch

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/jlaffaye/ftp"

	"github.com/decorum-crawler/decorum"
)

// connectAndFetch opens the session and sets res to what is at name. Its error is a
// *textproto.Error if a reply of the server ended the visit.
func (s *session) connectAndFetch(name string, res *decorum.Response) (err error) {
	defer func() {
		if p := recover(); p != nil { // the ftp client panics on some replies
			err = fmt.Errorf("a reply of the server cannot be read: %v", p)
		}
	}()
	if err := s.connectAndLogin(); err != nil {
		return err
	}
	if _, err := url.PathUnescape(res.URL.PathAndQuery()); err != nil {
		// The percent sign of a file's name has two spellings, and robots.txt was checked for this one.
		res.Status = http.StatusMovedPermanently
		res.Header.Set("Location", res.URL.Origin().String()+(&url.URL{Path: name}).EscapedPath())
		return nil
	}
	if strings.HasSuffix(name, "/") {
		return s.fetchListing(name, res)
	}
	err = s.fetchFile(name, res)
	// A directory that is named like a file is redirected to its URL with a slash.
	if replyCode(err)/100 == 5 && !s.ticket.Kind().IsRobots() && s.redirectIfDirectory(name, res) {
		return nil
	}
	return err
}

// redirectIfDirectory sets res to a redirect to the URL of name with a slash, and returns true, if name
// is a directory.
func (s *session) redirectIfDirectory(name string, res *decorum.Response) bool {
	if s.client.ChangeDir(name) != nil {
		return false
	}
	res.Status, res.Body = http.StatusMovedPermanently, nil
	res.Header = http.Header{"Location": {res.URL.String() + "/"}}
	return true
}

// sniffBytes is how many bytes of a file its content type is detected from.
const sniffBytes = 512

// fetchFile sets res to a file, unless the file is unmodified since the last visit or its type is
// not wanted.
func (s *session) fetchFile(name string, res *decorum.Response) error {
	if !s.checkModified(name, res.Header) {
		res.Status = http.StatusNotModified
		return nil
	}
	contentType := contentTypeByName(name)
	if contentType != "" && !s.ticket.WantsContentType(contentType, s.cfg.ContentTypes) {
		if done, err := s.answerWithoutTransfer(name, contentType, res); done || err != nil {
			return err
		}
	}
	answer, err := s.client.Retr(name)
	if err != nil {
		return markNotFound(err)
	}
	// Find the content type, from the name or else from the first bytes.
	var head []byte
	if contentType == "" {
		if head, err = io.ReadAll(io.LimitReader(answer, sniffBytes)); err != nil {
			return err
		}
		contentType = http.DetectContentType(head)
	}
	if !s.ticket.WantsContentType(contentType, s.cfg.ContentTypes) {
		s.setUnwantedFile(res, contentType)
		return nil // the end of the session ends the transfer
	}
	res.Status = http.StatusOK
	res.Header.Set("Content-Type", contentType)
	if err := s.readBody(io.MultiReader(bytes.NewReader(head), answer), res); err != nil || res.BodyLimitExceeded {
		return err
	}
	return errorUnlessComplete(answer.Close()) // the server says whether it sent all
}

// readBody sets the body of res, or, of a sitemap, s.bodySpool.
func (s *session) readBody(body io.Reader, res *decorum.Response) (err error) {
	if !s.ticket.StreamsBody() {
		res.Body, res.BodyLimitExceeded, err = s.memoryShare.ReadAll(s.ctx, body, s.maxBodyBytes, 0, nil)
		return err
	}
	if s.bodySpool, err = s.memoryShare.NewCompressedSpool(s.ctx, s.cfg.BodyMemory.MaxBodyLen(1)); err != nil {
		return err
	}
	res.BodyLimitExceeded, err = s.bodySpool.Fill(body, s.maxBodyBytes)
	return err
}

// answerWithoutTransfer sets res to a file whose name says that its type is not wanted, if the server can
// say whether the file exists: most of a large file may be under way before a transfer ends. It returns
// false if the server cannot.
func (s *session) answerWithoutTransfer(name, contentType string, res *decorum.Response) (done bool, err error) {
	switch _, err = s.client.FileSize(name); {
	case replyCode(err) == ftp.StatusFileUnavailable:
		return false, markNotFound(err)
	case err != nil:
		return false, nil
	case !s.redirectIfDirectory(name, res): // some servers state the size of a directory
		s.setUnwantedFile(res, contentType)
	}
	return true, nil
}

// setUnwantedFile sets res to a file whose type is not wanted: without its body.
func (s *session) setUnwantedFile(res *decorum.Response, contentType string) {
	res.Status, res.BodyLimitExceeded = http.StatusOK, true
	res.Header.Set("Content-Type", contentType)
}

// contentTypeByName returns the content type of a file by its name's extension, "" if it is unknown.
func contentTypeByName(name string) string {
	extension := strings.ToLower(path.Ext(name))
	return cmp.Or(mime.TypeByExtension(extension), largeFileTypes[extension])
}

// largeFileTypes has the types of files that ftp servers are full of, for machines without a list of
// types.
var largeFileTypes = map[string]string{
	".7z": "application/x-7z-compressed", ".avi": "video/x-msvideo", ".bz2": "application/x-bzip2",
	".deb": "application/vnd.debian.binary-package", ".dmg": "application/x-apple-diskimage",
	".exe": "application/x-msdownload", ".gz": "application/gzip", ".img": "application/octet-stream",
	".iso": "application/x-iso9660-image", ".jar": "application/java-archive", ".mp3": "audio/mpeg",
	".mp4": "video/mp4", ".rar": "application/vnd.rar", ".rpm": "application/x-rpm",
	".tar": "application/x-tar", ".tgz": "application/gzip", ".xz": "application/x-xz",
	".zip": "application/zip", ".zst": "application/zstd",
}

// errorUnlessComplete returns err, or nil if err is a reply that the transfer is complete. Without
// such a reply the file may be cut.
func errorUnlessComplete(err error) error {
	if replyCode(err) == ftp.StatusRequestedFileActionOK { // means the same as 226 (RFC 959 §4.2.2)
		return nil
	}
	return err
}

// checkModified sets Last-Modified to the file's time, and reports whether the file must be
// fetched. It returns true if the server does not know the time.
func (s *session) checkModified(name string, h http.Header) bool {
	at, err := s.client.GetTime(name)
	if err != nil {
		return true
	}
	now := at.UTC().Format(http.TimeFormat)
	h.Set("Last-Modified", now)
	_, last := s.ticket.Validators(nil)
	return last != now
}
