// Figures with several plots, and the data that they show as CSV.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem {

struct Point {
  double x, y;
};

struct Curve {
  std::string name;   // in the key; equal names share an entry
  std::string style;  // gnuplot's, such as ours()
  std::vector<Point> points;
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  std::string settings = {};  // gnuplot's, for the axes
};

struct Figure {
  std::string name;   // of the files
  std::string title;  // for screen readers
  std::vector<Plot> plots;
  int columns = 2;
};

// Curves of an algorithm have its colour (speedup/palette.h). What we simulate is a line with
// points, a formula is a dashed line, and what a paper measured are crosses.
std::string ours(const std::string& colour);
std::string formula(const std::string& colour);
std::string paper(const std::string& colour);
std::string line(const std::string& colour);

// Marks every x, and nothing between them.
std::string x_tics(const std::vector<double>& all);

// Writes NAME.csv, NAME.svg and NAME.png into the folder.
void draw(const Figure& figure, const std::filesystem::path& folder);

}  // namespace tandem
