package ftpfetch

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/jlaffaye/ftp"

	"github.com/decorum-crawler/decorum"
)

// visit opens the session and fills res with what is at name. A reply of the
// server that ends the visit is a *textproto.Error.
func (s *session) visit(name string, res *decorum.Response) (err error) {
	defer func() {
		if p := recover(); p != nil { // the client stumbles over some replies
			err = fmt.Errorf("a reply of the server cannot be read: %v", p)
		}
	}()
	if err := s.open(); err != nil {
		return err
	}
	if strings.HasSuffix(name, "/") {
		return s.directory(name, res)
	}
	err = s.file(name, res)
	if codeOf(err)/100 == 5 && !s.ticket.ForRobots() && s.server.ChangeDir(name) == nil {
		res.Status, res.Body = http.StatusMovedPermanently, nil
		res.Header = http.Header{"Location": {res.URL.String() + "/"}}
		return nil
	}
	return err
}

// sniffed is how many bytes of a file say of what type it is.
const sniffed = 512

// file fetches a file, if it is wanted and not as it was at the last visit.
func (s *session) file(name string, res *decorum.Response) error {
	if !s.modified(name, res.Header) {
		res.Status = http.StatusNotModified
		return nil
	}
	answer, err := s.server.Retr(name)
	if err != nil {
		return named(err)
	}
	var head []byte
	contentType := mime.TypeByExtension(path.Ext(name))
	if contentType == "" {
		if head, err = io.ReadAll(io.LimitReader(answer, sniffed)); err != nil {
			return err
		}
		contentType = http.DetectContentType(head)
	}
	res.Status = http.StatusOK
	res.Header.Set("Content-Type", contentType)
	if !s.ticket.WantsContentType(contentType, s.cfg.ContentTypes) {
		res.Truncated = true
		return nil // the end of the session ends the transfer
	}
	body := io.MultiReader(bytes.NewReader(head), answer)
	if s.ticket.StreamsBody() {
		if s.spool, err = s.share.NewSpool(s.ctx, s.cfg.Bodies.MaxBodyLen(1)); err != nil {
			return err
		}
		res.Truncated, err = s.spool.Fill(body, s.limit)
	} else {
		res.Body, res.Truncated, err = s.share.ReadAll(s.ctx, body, s.limit, 0, nil)
	}
	if err != nil || res.Truncated {
		return err
	}
	return whole(answer.Close())
}

// whole returns err unless it says that the transfer is complete. Without that
// reply it may have been cut.
func whole(err error) error {
	if codeOf(err) == ftp.StatusRequestedFileActionOK { // as good as 226 (RFC 959 §4.2.2)
		return nil
	}
	return err
}

// modified notes when a file was modified, and reports whether it is to be
// fetched. Not every server knows; one that has gone does not answer RETR either.
func (s *session) modified(name string, h http.Header) bool {
	at, err := s.server.GetTime(name)
	if err != nil {
		return true
	}
	now := at.UTC().Format(http.TimeFormat)
	h.Set("Last-Modified", now)
	_, last := s.ticket.Validators()
	return last != now
}

// entryFactor is how many bytes an entry of a listing takes, as it was parsed and in the
// page that is made of it, for each byte of its line.
const entryFactor = 4

// directory makes a page of the entries of a directory. It is listed from
// within: some servers take a name for options or a pattern.
func (s *session) directory(name string, res *decorum.Response) error {
	inside := strings.TrimSuffix(name, "/")
	if err := s.server.ChangeDir(cmp.Or(inside, "/")); err != nil {
		return named(err)
	}
	res.Status = http.StatusOK
	res.Header.Set("Content-Type", listingType)
	if !s.ticket.WantsContentType(listingType, s.cfg.ContentTypes) {
		res.Truncated = true
		return nil
	}
	s.listing = true
	entries, err := s.server.List("")
	cut := s.data != nil && s.data.left == 0
	if err = whole(err); err != nil && !cut {
		return err
	}
	res.Body, res.Truncated = listing(name, entries, s.limit)
	res.Truncated = res.Truncated || cut
	return nil
}
