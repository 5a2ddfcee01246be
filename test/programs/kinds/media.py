"""Pictures, sound, films and documents."""

import os

from outcome import Skipped
from registry import ROOT, program

PICTURE = ("-size", "600x400", "plasma:tomato-steelblue", "-seed", "7")


@program("imagemagick:convert")
def imagemagick(session):
    """ImageMagick: draws, scales, filters, quantises and converts, with two threads"""
    script = ("convert -seed 7 -size 500x300 gradient:red-blue -swirl 120 -blur 0x3 -resize 170% -charcoal 2 +dither -colors 32 -strip out.ppm && sha256sum out.ppm && "
              "convert out.ppm -quality 85 -strip out.jpg && convert out.jpg -rotate 17 -strip PNG24:out.png && convert out.png rgb:- | sha256sum && "
              "convert -size 300x200 xc:white -fill black -draw 'circle 100,100 150,120' -distort Arc 80 -compress none ppm:- | sha256sum && "
              "identify -format '%w %h %m %k\\n' out.jpg out.png")
    session.both(["sh", "-c", script], env={"MAGICK_THREAD_LIMIT": "2"})
    session.served(["convert", *PICTURE[:3], "-blur", "0x3", "-resize", "150%", "out.png"], env={"MAGICK_THREAD_LIMIT": "2"}, least_pages=20)


POSTSCRIPT = """%!PS
/Times-Roman findfont 14 scalefont setfont
1 1 12 { /page exch def
  0 1 60 { /i exch def 40 760 i 12 mul sub moveto (line ) show i 10 string cvs show ( of page ) show page 10 string cvs show } for
  0 5 355 { /a exch def gsave 400 400 translate a rotate a 360 div 0.5 1 a 360 div sub setrgbcolor 0 0 moveto 100 0 lineto 100 20 lineto closepath fill grestore } for
  showpage } for
/d 2000 dict def 0 1 30000 { dup 2000 mod exch 20 string cvs d 3 1 roll put } for d length =
"""


@program("ghostscript:gs")
def ghostscript(session):
    """Ghostscript: PostScript to PDF and to pictures"""
    (session.work / "in.ps").write_text(POSTSCRIPT, encoding="utf-8")
    source = session.work / "in.ps"
    script = (f"gs -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r60 -o page%02d.ppm {source} && cat page*.ppm | sha256sum && "
              f"gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -o out.pdf {source} && gs -q -dBATCH -sDEVICE=txtwrite -o - out.pdf | sha256sum")
    session.both(["sh", "-c", script])
    session.served(["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", "-o", "out.pdf", source], least_pages=30)


@program("poppler-utils:pdftotext", "ghostscript:gs")
def poppler(session):
    """Poppler: text, pictures and pages of a PDF"""
    (session.work / "in.ps").write_text(POSTSCRIPT, encoding="utf-8")
    pdf = session.work / "in.pdf"
    session.client(["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", "-o", pdf, session.work / "in.ps"])
    script = (f"pdftotext -layout {pdf} - | sha256sum; pdftoppm -r 50 {pdf} page && cat page*.ppm | sha256sum; pdftocairo -svg -f 2 -l 2 {pdf} - | sha256sum; "
              f"pdfinfo {pdf} | grep Pages; pdfseparate -l 3 {pdf} p%d.pdf && pdfunite p1.pdf p2.pdf p3.pdf all.pdf && pdftotext all.pdf - | sha256sum")
    session.both(["sh", "-c", script])
    session.served(["pdftoppm", "-r", "50", pdf, "page"], least_pages=50)


@program("ffmpeg")
def ffmpeg(session):
    """FFmpeg: encodes and decodes film and sound with two threads, and filters them"""
    source = "-f lavfi -i testsrc=size=320x240:rate=15:duration=3 -f lavfi -i sine=frequency=440:duration=3"
    script = (f"ffmpeg -v error -nostdin -threads 2 {source} -c:v mpeg4 -q:v 5 -c:a flac -bitexact -fflags +bitexact -flags +bitexact -y out.mkv && "
              "ffmpeg -v error -nostdin -threads 2 -i out.mkv -f framemd5 - | sha256sum && "
              "ffmpeg -v error -nostdin -i out.mkv -vf 'hue=s=0,scale=160:120,edgedetect,rotate=0.3' -an -c:v libx264 -threads 2 -preset fast -bitexact -flags +bitexact -y out.mp4 && "
              "ffmpeg -v error -nostdin -i out.mp4 -f rawvideo - | sha256sum && "
              "ffmpeg -v error -nostdin -i out.mkv -af 'aecho=0.8:0.8:60:0.3,atempo=1.3' -vn -f s16le - | sha256sum")
    session.both(["sh", "-c", script])
    session.served([*f"ffmpeg -v error -nostdin -threads 2 {source} -c:v mpeg4 -c:a flac -y out.mkv".split()], least_pages=50)


@program("sox")
def sox(session):
    """SoX: synthesises, filters and resamples sound"""
    script = ("sox -R -n -r 44100 -c 2 out.wav synth 6 pluck 220 reverb 40 vol 0.5 && sha256sum out.wav && "
              "sox -R out.wav -r 16000 -b 16 out2.wav tempo 1.4 pitch 200 flanger && sha256sum out2.wav && sox out2.wav -n stat 2>&1 | head -8")
    session.both(["sh", "-c", script])
    session.served(["sox", "-R", "-n", "-r", "44100", "out.wav", "synth", "3", "pluck", "220", "reverb", "40"], least_pages=5)


@program("librsvg2-bin:rsvg-convert")
def rsvg(session):
    """librsvg, which is in Rust: this project's charts to PNG and PDF"""
    charts = " ".join(str(ROOT / "docs/benchmarks" / name) for name in ("overall.svg", "time.svg", "memory.svg"))
    script = f"for i in {charts}; do rsvg-convert $i -o out.png && sha256sum out.png; rsvg-convert -f eps $i | grep -v '^%%' | sha256sum; done"
    session.both(["sh", "-c", script])
    session.served(["rsvg-convert", ROOT / "docs/benchmarks/time.svg", "-o", "out.png"], least_pages=50)


@program("optipng", "imagemagick:convert")
def optipng(session):
    """OptiPNG: tries filters and levels of a picture"""
    picture = session.work / "in.png"
    session.client(["convert", "-size", "200x150", "gradient:red-blue", "-swirl", "90", "-strip", picture])
    session.both(["sh", "-c", f"optipng -q -o3 -out out.png {picture} && sha256sum out.png"])
    session.served(["optipng", "-q", "-o1", "-out", "out.png", picture], least_pages=2)


@program("tesseract-ocr:tesseract", "imagemagick:convert", "ghostscript:gs")
def tesseract(session):
    """Tesseract: reads the text of a page"""
    (session.work / "in.ps").write_text("%!PS\n/Helvetica findfont 24 scalefont setfont\n" + "".join(
        f"50 {700 - i * 40} moveto (The quick brown fox number {i} jumps over) show\n" for i in range(8)) + "showpage\n", encoding="utf-8")
    picture = session.work / "in.png"
    session.client(["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pnggray", "-r120", "-o", picture, session.work / "in.ps"])
    result = session.both(["tesseract", picture, "stdout", "--dpi", "120"], env={"OMP_THREAD_LIMIT": "1"}, stderr=False)
    if "quick brown fox" not in result.out:
        raise Skipped(f"it cannot read: {result.out[:60]!r}; is the data for English there?")
    session.served(["tesseract", picture, "stdout", "--dpi", "120"], env={"OMP_THREAD_LIMIT": "1"}, least_pages=100)


@program("vlc-bin:cvlc", "vlc-plugin-base:vlc-plugin-base", "ffmpeg")
def vlc(session):
    """VLC without a screen: plays a film into a file, with the modules that it opens for it"""
    film = session.work / "in.mkv"
    session.client(["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=2", "-f", "lavfi", "-i",
                    "sine=duration=2", "-c:v", "mpeg4", "-c:a", "flac", "-y", film])
    # It refuses to run as root; only its start script looks.
    user = 65534 if os.getuid() == 0 else None

    def argv(where):
        return ["vlc", "-I", "dummy", "--no-video-title-show", "--ignore-config", "--no-plugins-cache", film,
                "--sout", f"#transcode{{acodec=s16l,samplerate=8000,channels=1}}:std{{access=file,mux=wav,dst={where}/out.wav}}", "vlc://quit"]

    def once(preload):
        where = session.fresh("out")
        where.chmod(0o777)
        session.must(argv(where), preload, cwd=where, user=user, env={"HOME": str(where)})
        return f"{(where / 'out.wav').stat().st_size // 4096}"

    session.same(once)
    where = session.fresh("served")
    where.chmod(0o777)
    session.served(argv(where), cwd=where, user=user, env={"HOME": str(where)}, least_pages=50)
