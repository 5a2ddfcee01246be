# Strings, hashes, sorting, regular expressions and objects in Perl, in as many rounds as the argument says.
use strict;
use warnings;

my $rounds   = shift;
my $state    = 12345;
my $checksum = 0;

sub random_below {
  my ($n) = @_;
  $state = ($state * 1103515245 + 12345) & 0x7fffffff;
  return ($state >> 8) % $n;
}

sub check {
  my ($text) = @_;
  $checksum = ($checksum * 31 + unpack('%32C*', $text)) % 281474976710597;
}

my @syllables = qw(ka lo mi ter un es po ri dan vo sel gra);

sub word {
  return join '', map { $syllables[random_below(scalar @syllables)] } 1 .. 1 + random_below(4);
}

sub words {
  my $text = join ' ', map { word() } 1 .. 20000;
  my %counts;
  $counts{$1}++ while $text =~ /(\w+)/g;
  my @sorted = sort { $counts{$b} <=> $counts{$a} || $a cmp $b } keys %counts;
  check("$_ $counts{$_}") for @sorted[0 .. 99];
  (my $turned = $text) =~ s/(\w)(\w*)/$2\u$1ay/g;
  my @lines = map { sprintf '%-30s|%s', $_, scalar reverse $_ } split / /, $turned;
  check(join "\n", @lines);
}

# Records as hashes of arrays, written as lines and read back.
sub records {
  my @records = map {
    {
      id   => $_,
      name => word() . ' ' . word(),
      tags => [map { word() } 1 .. random_below(5)],
      at   => { x => random_below(1000) },
    }
  } 1 .. 5000;
  my $text = '';
  for my $r (@records) {
    $text .= join("\t", $r->{id}, $r->{name}, $r->{at}{x}, @{ $r->{tags} }) . "\n";
  }
  my %by_name;
  for my $line (split /\n/, $text) {
    my ($id, $name, $x, @tags) = split /\t/, $line;
    push @{ $by_name{$name} }, { id => $id, x => $x, tags => \@tags };
  }
  my $n = 0;
  for my $name (sort keys %by_name) {
    for my $r (@{ $by_name{$name} }) {
      my $original = $records[$r->{id} - 1];
      if ("@{ $r->{tags} }" ne "@{ $original->{tags} }" || $r->{x} != $original->{at}{x}) {
        print "FAILED: a record is not what was written\n";
        exit 1;
      }
      $n++;
    }
    check($name);
  }
  check($n);
}

# A queue of closures that keep strings.
sub jobs {
  my @queue;
  my $total = 0;
  for my $i (1 .. 40000) {
    my $note = "job $i of " . word();
    push @queue, sub { return length($note) + $i };
    $total += (shift @queue)->() if $i % 3;
    substr($note, 0, 3) = 'done ' x random_below(8);
  }
  check($total);
}

for (1 .. $rounds) {
  words();
  records();
  jobs();
}
printf "perl %d: %012x\n", $rounds, $checksum;
