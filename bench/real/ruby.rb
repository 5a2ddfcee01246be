# Strings, hashes, arrays, JSON and objects in Ruby, in as many rounds as the argument says.
require 'json'

rounds = Integer(ARGV[0])
$state = 12_345
$checksum = 0

def random_below(n)
  $state = ($state * 1_103_515_245 + 12_345) & 0x7fffffff
  ($state >> 8) % n
end

def check(value)
  value.to_s.each_byte.each_slice(16) { |slice| $checksum = ($checksum * 31 + slice.sum) & 0xffffffffffff }
end

def required(condition, what)
  return if condition
  puts "FAILED: #{what}"
  exit 1
end

SYLLABLES = %w[ka lo mi ter un es po ri dan vo sel gra].freeze

def word
  (1 + random_below(4)).times.map { SYLLABLES[random_below(SYLLABLES.size)] }.join
end

def words
  text = Array.new(20_000) { word }.join(' ')
  counts = Hash.new(0)
  text.scan(/[a-z]+/) { |w| counts[w] += 1 }
  check(counts.sort_by { |w, n| [-n, w] }.first(100))
  turned = text.gsub(/[a-z]+/) { |w| w.reverse.capitalize }
  lines = turned.split.each_slice(10).map { |line| line.join('_').ljust(120, '.') + "\n" }
  check(lines.join[0, 20_000])
end

def records
  list = Array.new(5000) do |i|
    { 'id' => i, 'name' => "#{word} #{word} of #{word}", 'tags' => Array.new(random_below(5)) { word },
      'note' => 'long enough for a block of its own: ' + word * 5 }
  end
  text = JSON.generate(list)
  required(JSON.parse(text) == list, 'JSON')
  copy = Marshal.load(Marshal.dump(list))
  required(copy == list, 'Marshal')
  groups = copy.group_by { |record| record['name'][0] }.transform_values(&:size)
  check(groups.sort)
  check(text[0, 20_000])
end

# A piece of text that is cut and joined as in an editor.
Piece = Struct.new(:text, :marks)

def pieces
  document = Array.new(2000) { Piece.new(word * 10, { start: random_below(100) }) }
  20_000.times do |i|
    at = random_below(document.size)
    piece = document[at]
    if piece.text.size > 60
      middle = piece.text.size / 2
      document[at] = Piece.new(piece.text[0, middle], piece.marks.merge(cut: i))
      document << Piece.new(piece.text[middle..], { start: i })
    else
      piece.text << word << word
    end
    document.pop if document.size > 3000
  end
  check(document.sum { |piece| piece.text.size * piece.marks.size })
end

rounds.times do
  words
  records
  pieces
end
puts format('ruby %d: %012x', rounds, $checksum)
