package documents_test

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
)

// TestMailAsItIsSent checks that messages from programs that ignore the standards are read.
func TestMailAsItIsSent(t *testing.T) {
	alternative := func(plain, page string) string {
		return "Subject: s\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n\n" +
			"--b\nContent-Type: text/plain\n\n" + plain + "\n--b\n" + page + "\n--b--\n"
	}
	for name, c := range map[string]struct {
		mail  string
		texts []string
		not   string
	}{
		"an empty plain part": {
			alternative("", "Content-Type: text/html\n\n<p>page 7</p>"), []string{"page 7"}, "Attachment",
		},
		"a blank plain part": {
			alternative("\u00a0 \n\t\n", "Content-Type: text/html\n\n<p>page 7</p>"), []string{"page 7"}, "",
		},
		"an empty plain part beside related parts": {
			alternative(" ", "Content-Type: multipart/related; boundary=c\n\n--c\nContent-Type: text/html\n\n"+
				"<p>page 7</p>\n--c\nContent-Type: text/css\n\np{}\n--c--"), []string{"page 7"}, "p{}",
		},
		"a plain part that says much less": {
			alternative("Open this in a browser.", "Content-Type: text/html\n\n<p>"+strings.Repeat("word ", 100)),
			[]string{"word word"},
			"browser",
		},
		"two whole parts": {
			alternative("the text 7", "Content-Type: text/html\n\n<p>the page 8</p>"),
			[]string{"the text 7"},
			"page 8",
		},
		"UTF-8 that is called ASCII": {
			"Subject: s\nContent-Type: text/plain; charset=us-ascii\n\nüber 5 €", []string{"über 5 €"}, "",
		},
		"UTF-8 that is called Latin-1": {
			"Subject: s\nContent-Type: text/plain; charset=iso-8859-1\n" +
				"Content-Transfer-Encoding: quoted-printable\n\n=C3=BCber 5 =E2=82=AC", []string{"über 5 €"}, "",
		},
		"Latin-1 that is called nothing": {"Subject: s\n\n\xfcber 5", []string{"über 5"}, "\uFFFD"},
		"Latin-1 in a header": {
			"From: J\xfcrgen <j@example.com>\nSubject: \xdcber\nContent-Type: text/plain; charset=iso-8859-1\n\nx",
			[]string{"From: Jürgen <j@example.com>", "Subject: Über"},
			"\uFFFD",
		},
		"UTF-8 in a header": {
			"From: Jürgen <j@example.com>\nSubject: Über\n\nx",
			[]string{"From: Jürgen <j@example.com>", "Subject: Über"},
			"",
		},
		"characters that two encoded words share": {
			"From: =?utf-8?B?SsM=?= =?utf-8?B?vHJnZW4=?= <j@example.com>\n" +
				"Subject: =?utf-8?Q?=E6=97=A5=E6=9C?=\n =?utf-8?Q?=AC_1?=\n\nx",
			[]string{"From: Jürgen <j@example.com>", "Subject: 日本 1"},
			"",
		},
		"a comma in an encoded name": {
			"To: =?utf-8?Q?M=C3=BCller=2C_Jo?= <a@example.com>, b@example.com\nSubject: s\n\nx",
			[]string{"To: Müller, Jo <a@example.com>, b@example.com"},
			"",
		},
		"a footer below base64": {
			"Subject: s\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n" +
				base64.StdEncoding.EncodeToString([]byte("größer")) + "\n\n___\nthe list\n",
			[]string{"größer", "the list"},
			"",
		},
		"flowed text": {
			"Subject: s\nContent-Type: text/plain; format=flowed\n\nOne line \nthat goes on.\n> a \n> quote\n",
			[]string{"One line that goes on.", "> a quote"},
			"",
		},
		"a delivery status": {
			"Subject: s\nContent-Type: multipart/report; boundary=b\n\n--b\n\nbounced\n" +
				"--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nStatus: 5.2.2\n" +
				"--b\nContent-Type: text/rfc822-headers\n\nSubject: the first\n--b--\n",
			[]string{"bounced", "Status: 5.2.2", "Subject: the first"},
			"",
		},
		"an attached message": {
			"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n" +
				"Subject: \xfcber\nContent-Type: text/plain; charset=iso-8859-1\n\n\xfcber 5\n--b--\n",
			[]string{"### Attached message", "Subject: über", "über 5"},
			"\uFFFD",
		},
		"a text of no type": {
			"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n" +
				"--b\nContent-Type: application/octet-stream; name=a.csv\n\nk,v\n1,2\n--b--\n",
			[]string{"### Attachment a.csv", "k,v"},
			"",
		},
		"a page with its parts in one file": {
			"From: <Saved by a browser>\nSubject: s\nContent-Type: multipart/related; boundary=b\n\n" +
				"--b\nContent-Type: text/html\nContent-Location: http://example.com/\n\n<h1>page 7</h1>\n" +
				"--b\nContent-Type: text/css\nContent-Location: http://example.com/a\n\np { color: red }\n--b--\n",
			[]string{"# page 7"},
			"color",
		},
		"a message without its end": {
			"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nfirst\n--b\n\nsecond",
			[]string{"first", "second"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []string{"\n", "\r\n"} {
				text, _, err := convert(t, documents.Mail, []byte(strings.ReplaceAll(c.mail, "\n", end)))
				if err != nil {
					t.Fatal(err)
				}
				checkOrder(t, text, c.texts)
				if c.not != "" && strings.Contains(text, c.not) {
					t.Errorf("%q is in\n%s", c.not, text)
				}
			}
		})
	}
}

// TestFilesOfOutlookInMail reads a winmail.dat file, which contains the text and the attachments.
func TestFilesOfOutlookInMail(t *testing.T) {
	attribute := func(level byte, name, kind uint16, data string) []byte {
		out := binary.LittleEndian.AppendUint16([]byte{level}, name)
		out = binary.LittleEndian.AppendUint16(out, kind)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		return append(append(out, data...), 0, 0)
	}
	property := func(kind, name uint16, data string) []byte {
		out := binary.LittleEndian.AppendUint16(nil, kind)
		out = binary.LittleEndian.AppendUint16(out, name)
		out = binary.LittleEndian.AppendUint32(out, 1)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
		return append(append(out, data...), make([]byte, (4-len(data)%4)%4)...)
	}
	properties := string(append([]byte{1, 0, 0, 0}, property(0x1f, 0x3707, string(wide("größe.txt")))...))

	tnef := []byte("\x78\x9f\x3e\x22\x01\x00")
	tnef = append(tnef, attribute(1, 0x9007, 6, "\xe4\x04\x00\x00\x00\x00\x00\x00")...) // code page 1252
	tnef = append(tnef, attribute(1, 0x8004, 1, "The subject\x00")...)
	tnef = append(tnef, attribute(1, 0x800c, 2, "The b\xf6dy\x00")...)
	tnef = append(tnef, attribute(2, 0x9002, 6, "\x01\x00")...)
	tnef = append(tnef, attribute(2, 0x8010, 1, "GRE~1.TXT\x00")...)
	tnef = append(tnef, attribute(2, 0x800f, 6, "inner text 7")...)
	tnef = append(tnef, attribute(2, 0x9005, 6, properties)...)

	mail := "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n--b\n" +
		"Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n" +
		base64.StdEncoding.EncodeToString(tnef) + "\n--b--\n"
	text, about, err := convert(t, documents.Mail, []byte(mail))
	if err != nil || len(about.Warnings) > 0 {
		t.Fatal(err, about)
	}
	checkOrder(t, text, []string{"see", "winmail.dat", "The subject", "The bödy", "größe.txt", "inner text 7"})

	for end := range tnef { // cut short
		cut := strings.Replace(mail, base64.StdEncoding.EncodeToString(tnef),
			base64.StdEncoding.EncodeToString(tnef[:end]), 1)
		if _, _, err := convert(t, documents.Mail, []byte(cut)); err != nil {
			t.Fatalf("%d bytes: %v", end, err)
		}
	}
}
