"""What is shown: reports, pictures, and the pages of lint."""
