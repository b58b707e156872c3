// Package ftpfetch fetches ftp URLs: robots.txt, files and directories, with an anonymous login
// (RFC 959, RFC 1635, LOC-14). It decides which status an FTP reply becomes. It never decides whether
// or when a URL is visited, and dials only through its Dialer.
//
//	web, err := httpfetch.New(httpfetch.Config{UserAgent: "examplebot/1.0 (+https://example.org/bot)"})
//	...
//	fetcher, err := ftpfetch.New(ftpfetch.Config{Dialer: web, Password: "bot@example.org"})
//
// Begin reading at Fetcher.Fetch, which makes one visit with a session (session.go, transfers.go,
// listing.go).
//
// A Fetcher returns responses like those of an HTTP fetcher, so that robots.txt, delays, output and
// callbacks need no knowledge of ftp. A reply of the server becomes the status with the same meaning:
//
//	200  a file, or the listing of a directory whose URL ends in a slash
//	301  a directory whose URL does not end in a slash
//	304  a file that has not been modified since the last visit (MDTM)
//	404  a missing file: reply 550, 551 or 553 to RETR or CWD
//	503  the server is too busy: reply 421
//
// Any other reply, including a refused login (530), becomes an error with the server's text. Therefore
// a missing robots.txt allows everything, and one that the server refuses for another reason allows
// nothing.
//
// A directory becomes an HTML page with a link to each entry. The page contains only their names, so it
// changes only when they do.
//
// Each visit has a separate control connection, which it closes. Data connections are passive and lead
// only to the address of the control connection, whatever the server says. The package starts no
// goroutine and has no lock; the end of the visit's context closes its connections.
package ftpfetch
